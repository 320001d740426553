package browser

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// reactions is the number of inputs to each control.
const reactions = 10

// controls are the inputs of the benchmark, by the name of a control. A box changes with each input.
var controls = []struct {
	name   string
	values []string
}{
	{"base", []string{"oci/runtime1", "native"}},
	{"show", []string{"value", "difference", ""}},
	{"order", []string{"size", "on oci/runtime2", "name", ""}},
	{"m", []string{"large3", ""}},
	{"t", []string{""}},
	{"shown", []string{""}},
}

// opened are the times in ms until the page is loaded, and until the first frame with the controls is drawn.
const opened = `new Promise((resolve) => {
	const channel = new MessageChannel() // a message arrives after the frame of a callback
	channel.port1.onmessage = () => resolve([performance.getEntriesByType("navigation")[0].loadEventEnd, performance.now()])
	requestAnimationFrame(() => channel.port2.postMessage(null))
})`

// reaction is the time in ms from an input to the end of the frame after it.
const reaction = `new Promise((resolve) => {
	const field = document.querySelector(".controls [name=%s]")
	const start = performance.now()
	if (field.type === "checkbox") field.checked = !field.checked; else field.value = %q
	field.dispatchEvent(new Event("input", {bubbles: true}))
	requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)))
})`

// BenchmarkPage measures the page of a run of many targets and benchmarks: the time to write it from the results file, its size, the time to open it,
// and the reaction to each control. All times are medians.
func BenchmarkPage(b *testing.B) {
	for _, l := range []reporttest.Large{
		{Name: "20-targets", Targets: 20, Benchmarks: 40, Blocks: 50, Metrics: 1, Values: 1},
		{Name: "9-targets", Targets: 9, Benchmarks: 40, Blocks: 12, Metrics: 1, Values: 1}, // few enough for comparisons with each baseline
	} {
		b.Run(l.Name, func(b *testing.B) { measurePage(b, l) })
	}
}

func measurePage(b *testing.B, l reporttest.Large) {
	ctx := tab(b)
	must.Do(b, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 1000)))
	text, took := largePage(b, l)
	address := saved(b, text)
	times := map[string][]float64{}
	for b.Loop() {
		open(b, ctx, address)
		moments := evaluate[[]float64](b, ctx, opened, chromedp.EvalAwaitPromise)
		times["load-ms"] = append(times["load-ms"], moments[0])
		times["drawn-ms"] = append(times["drawn-ms"], moments[1])
	}
	for _, c := range controls {
		if !evaluate[bool](b, ctx, fmt.Sprintf(`document.querySelector(".controls [name=%s]") !== null`, c.name)) {
			continue
		}
		for i := range reactions {
			times[c.name+"-ms"] = append(times[c.name+"-ms"], evaluate[float64](b, ctx, fmt.Sprintf(reaction, c.name, c.values[i%len(c.values)]), chromedp.EvalAwaitPromise))
		}
	}
	b.ReportMetric(took.Seconds(), "write-s")
	b.ReportMetric(float64(len(text))/1e6, "MB")
	for name, values := range times {
		b.ReportMetric(stats.Median(values), name)
	}
}

// largePage returns the page of a run from a results file, and the time to make it.
func largePage(b *testing.B, l reporttest.Large) (text string, took time.Duration) {
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "touchstone.db"))
	must.Do(b, err)
	defer func() { must.Do(b, db.Close()) }()
	_, err = db.Import(b.Context(), l.Read)
	must.Do(b, err)
	start := time.Now()
	run, err := db.Run(b.Context(), "latest")
	must.Do(b, err)
	r := report.New([]result.Run{run}, analysis.Options{})
	var page strings.Builder
	must.Do(b, html.Write(&page, runs.Document(&r)))
	return page.String(), time.Since(start)
}
