package html_test

import (
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// page is the report of a run whose trials all have the given timelines and phases.
func page(t *testing.T, phases []result.Phase, lines ...result.Timeline) string {
	t.Helper()
	run := reporttest.Small()
	for i := range run.Trials {
		if run.Trials[i].Status == result.OK {
			run.Trials[i].Timelines = lines
			if phases != nil {
				run.Trials[i].Phases = phases
			}
		}
	}
	var out strings.Builder
	if err := html.Write(&out, report.New([]result.Run{run}, analysis.Options{})); err != nil {
		t.Fatal(err)
	}
	_, figures, ok := strings.Cut(out.String(), `<figure class="timelines">`)
	if !ok {
		t.Fatal("the page has no timelines")
	}
	return figures
}

func TestTimelines(t *testing.T) {
	got := page(t,
		[]result.Phase{{Name: "start", Start: 0, Duration: 4 * time.Second}, {Name: "kill", Start: 6 * time.Second, Duration: 10 * time.Millisecond}},
		result.Timeline{Group: "Memory <b>", Name: "used & free", Unit: result.Bytes, At: []time.Duration{0, 8 * time.Second}, Values: []float64{0, 100 << 20}})
	for _, want := range []string{
		"<b>Memory &lt;b&gt;</b> over time", "used &amp; free", "100 MiB", "start: 0 s to 4.00 s", "a kill", `aria-label="Memory &lt;b&gt; on native`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the figure does not contain %q", want)
		}
	}
	if panels := strings.Count(got, `<p class="panel">`); panels != 2 {
		t.Errorf("the figure has %d panels for two targets", panels)
	}
}

// Timelines at the limits: no change at all, one value, and more values than the width has places.
func TestTimelinesAtLimits(t *testing.T) {
	line := result.Timeline{Group: "G", Name: "long", Unit: result.Count}
	for i := range result.MaxTimelinePoints {
		line.At, line.Values = append(line.At, time.Duration(i)*time.Millisecond), append(line.Values, float64(i%2))
	}
	line.Values[12_345] = 7000
	for name, lines := range map[string][]result.Timeline{
		"zero":     {{Group: "G", Name: "zero", Unit: result.Bytes, At: []time.Duration{0, 1}, Values: []float64{0, 0}}},
		"one":      {{Group: "G", Name: "one", Unit: result.Ratio, At: []time.Duration{5}, Values: []float64{3}}},
		"negative": {{Group: "G", Name: "negative", Unit: result.Bytes, At: []time.Duration{0, 9}, Values: []float64{-5, -9}}},
		"long":     {line},
	} {
		t.Run(name, func(t *testing.T) {
			got := page(t, nil, lines...)
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Error("a coordinate is no number")
			}
			if len(got) > 300_000 {
				t.Errorf("the figure has %d bytes", len(got))
			}
			if name == "long" && !strings.Contains(got, "at most 7000") {
				t.Error("the peak is lost")
			}
		})
	}
}

// A line of zeros is inside the plot, beside a line far above it.
func TestLineOfZeros(t *testing.T) {
	got := page(t, nil,
		result.Timeline{Group: "G", Name: "zero", Unit: result.Bytes, At: []time.Duration{0, time.Second}, Values: []float64{0, 0}},
		result.Timeline{Group: "G", Name: "high", Unit: result.Bytes, At: []time.Duration{0, time.Second}, Values: []float64{90 << 20, 100 << 20}})
	if !strings.Contains(got, `class="curve c1 d1" d="M46 124L`) {
		t.Error("the line of zeros is not on the axis")
	}
}

// Hundreds of timed regions become a few bands with their number.
func TestBandsOfManyRegions(t *testing.T) {
	var phases []result.Phase
	for i := range 200 {
		phases = append(phases, result.Phase{Name: []string{"create", "start"}[i%2], Start: time.Duration(i) * 10 * time.Millisecond, Duration: 9 * time.Millisecond})
	}
	got := page(t, phases, result.Timeline{Group: "G", Name: "a", Unit: result.Count, At: []time.Duration{0, 4 * time.Second}, Values: []float64{0, 1}})
	if !strings.Contains(got, "200 × create, start") {
		t.Error("the regions are not joined")
	}
}
