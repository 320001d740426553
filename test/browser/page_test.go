// Package browser opens pages in Chromium and compares what it shows with the analysis of the same run. The package has only tests.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/record"
)

// tab is a tab of the browser, which ends with the test.
func tab(t testing.TB) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		record.Skip(t, "chromium is not on PATH; scripts/setup.sh tests installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// written writes the page of a document, and returns its address.
func written(t *testing.T, d *document.Document) string {
	t.Helper()
	var page strings.Builder
	must.Do(t, html.Write(&page, d))
	return saved(t, page.String())
}

func saved(t testing.TB, page string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	must.Do(t, os.WriteFile(file, []byte(page), 0o600))
	return "file://" + file
}

// pageOf returns the address of the page of a report.
func pageOf(t *testing.T, page func() string) string {
	t.Helper()
	return saved(t, page())
}

// The reports of the tests. A report takes seconds, so that the tests share them.
var sample, engines, suite, surfaces, explained = page(reporttest.Sample), page(reporttest.Engines), page(reporttest.Suite), page(reporttest.Surfaces), page(reporttest.Explained)

func page(run func() result.Run) func() string {
	return sync.OnceValue(func() string {
		r := report.New([]result.Run{run()}, analysis.Options{})
		var page strings.Builder
		if err := html.Write(&page, runs.Document(&r)); err != nil {
			panic(err)
		}
		return page.String()
	})
}

// TestPages runs all tests in one tab, because a browser takes seconds to start.
func TestPages(t *testing.T) {
	ctx := tab(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{
		{"matrix", testMatrix},
		{"address", testAddress},
		{"order", testOrder},
		{"hostile", testHostile},
		{"widths", testWidths},
		{"print", testPrint},
		{"accessibility", testAccessibility},
		{"read-out", testReadOut},
		{"download", testDownload},
		{"views", testViews},
		{"view-address", testViewAddress},
		{"log-axis", testLogAxis},
		{"pgfplots", testPGFPlots},
		{"figures", testFigures},
		{"surfaces", testSurfaces},
		{"timeline", testTimeline},
	} {
		t.Run(test.name, func(t *testing.T) {
			media(t, ctx, "", "light")
			must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 1000)))
			test.run(t, ctx)
		})
	}
}

// open opens an address. A change of the fragment alone loads nothing, so the page before it is an empty one.
func open(t testing.TB, ctx context.Context, address string) {
	t.Helper()
	must.Do(t, chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address)))
}

func evaluate[T any](t testing.TB, ctx context.Context, script string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, options...))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value
}

// choose sets a control of the matrix.
func choose(t *testing.T, ctx context.Context, name, value string) {
	t.Helper()
	set := fmt.Sprintf(`(() => { const field = document.querySelector(".controls [name=%s]"); const value = %s
		if (field.type === "checkbox") field.checked = value !== ""; else field.value = value
		field.dispatchEvent(new Event("input", {bubbles: true})) })()`, name, quoted(value))
	evaluate[chromedp.Void](t, ctx, set)
}

// media emulates print or a screen with a scheme of colours.
func media(t *testing.T, ctx context.Context, name, scheme string) {
	t.Helper()
	must.Do(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})))
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// cells are the visible cells of the matrix, by row and column: the first line of each.
const cells = `Array.from(document.querySelectorAll(".matrix tr[data-row]:not([hidden])")).map((row) =>
	Array.from(row.querySelectorAll("td:not([hidden])")).map((cell) => (cell.firstChild?.textContent ?? "").replaceAll("\u00a0", " ")))`

// testMatrix: with each baseline the matrix has the costs of an analysis of the run with this baseline, and the browser reports no error.
func testMatrix(t *testing.T, ctx context.Context) {
	run := reporttest.Sample()
	if messages := errorsOf(t, ctx, pageOf(t, sample)); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	if count := compareFactors(t, ctx, run); count < 40 {
		t.Errorf("the test has compared %d cells, want all of them", count)
	}
	// A factor without a shown difference is dim, and never bold.
	bold := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix td:not(.heat) *")).filter((e) => getComputedStyle(e).fontWeight > 400 && !e.matches(".good, .bad, .alarm")).map((e) => e.textContent)`)
	if len(bold) > 0 {
		t.Errorf("%q is bold without a shown difference", bold)
	}
}

// compareFactors compares the factors of the matrix with an analysis, for each baseline. It returns the number of factors.
func compareFactors(t *testing.T, ctx context.Context, run result.Run) int {
	t.Helper()
	count := 0
	for _, target := range evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll("[name=base] option")).map((o) => o.value)`) {
		choose(t, ctx, "base", target)
		twin := run
		twin.Baseline = target
		a := analysis.New([]result.Run{twin}, analysis.Options{})
		texts := evaluate[[][]string](t, ctx, cells)
		ids := evaluate[[]string](t, ctx, `JSON.parse(document.querySelector(".matrix script").textContent).rows.map((r) => r.id)`)
		targets := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix thead th")).map((head) => head.textContent)`)
		if len(texts) != len(ids) {
			t.Fatalf("the matrix has %d rows, want %d", len(texts), len(ids))
		}
		for i, id := range ids {
			for c, name := range targets {
				comparison, metric := find(a, id, name)
				if comparison == nil || comparison.Comparison == nil {
					continue
				}
				count++
				want := quantity.DecidingCost(comparison.Comparison, metric)
				if got := strings.TrimSuffix(texts[i][c], " "+quantity.AloneMark); got != want && want != quantity.None {
					t.Errorf("%s on %s against %s is %q, want %q", id, name, target, got, want)
				}
			}
		}
	}
	// A cost without a shown difference is dim, and never bold.
	bold := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix td:not(.heat) *")).filter((e) => getComputedStyle(e).fontWeight > 400 && !e.matches(".good, .bad, .alarm")).map((e) => e.textContent)`)
	if len(bold) > 0 {
		t.Errorf("%q is bold without a shown difference", bold)
	}
	return count
}

// find finds the cell of a row of the matrix.
func find(a *analysis.Analysis, id, target string) (*analysis.Cell, result.Metric) {
	for _, b := range a.Benchmarks() {
		for i := range b.Metrics {
			for n := range b.Metrics[i].Rows {
				if r := &b.Metrics[i].Rows[n]; b.Title()+"/"+b.Metrics[i].Name == id && r.Target == target {
					return &r.Cells[0], b.Metrics[i].Metric
				}
			}
		}
	}
	return nil, result.Metric{}
}

// errorsOf opens a page, and returns the messages that it and the browser write to the console, and the addresses that it requests.
func errorsOf(t *testing.T, ctx context.Context, address string) []string {
	t.Helper()
	must.Do(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	listen, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := chromedp.Console(listen)
	must.Do(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	evaluate[chromedp.Void](t, ctx, `console.log("end")`)
	var texts []string
	for m, err := range messages {
		must.Do(t, err)
		if m.Text == "end" {
			break
		}
		texts = append(texts, m.Text)
	}
	return append(texts, evaluate[[]string](t, ctx, `performance.getEntriesByType("resource").map((entry) => entry.name)`)...)
}

// testAddress: a choice is in the address, and the address restores it.
func testAddress(t *testing.T, ctx context.Context) {
	page := pageOf(t, sample)
	open(t, ctx, page)
	table := evaluate[[][]string](t, ctx, cells)
	choose(t, ctx, "m", "lifecycle/Create")
	choose(t, ctx, "base", "oci/runc")
	choose(t, ctx, "show", "difference")
	choose(t, ctx, "shown", "1")
	evaluate[chromedp.Void](t, ctx, `document.querySelector(".controls [name=t][value=native]").click()`)
	want := evaluate[[][]string](t, ctx, cells)
	if len(want) == 0 || len(want) >= len(table) || len(want[0]) != len(table[0])-1 {
		t.Fatalf("the choice has %d of %d rows", len(want), len(table))
	}
	address := evaluate[string](t, ctx, "location.hash")
	for _, part := range []string{"#base=oci/runc", "m=lifecycle/Create", "show=difference", "shown=1", "t=oci/runc"} {
		if !strings.Contains(address, part) {
			t.Errorf("the address %s lacks %s", address, part)
		}
	}
	open(t, ctx, page+address)
	if got := evaluate[[][]string](t, ctx, cells); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s restores %v, want %v", address, got, want)
	}
	// A fragment of another page, or of a hostile one, chooses nothing.
	for _, fragment := range []string{"#base=" + url.QueryEscape(`"]<img src=x onerror=alert(1)>`), "#t=none&s=none&m=%", "#benchmark/x"} {
		if messages := errorsOf(t, ctx, page+fragment); len(messages) > 0 {
			t.Errorf("%s: the browser reports %q", fragment, messages)
		}
	}
	open(t, ctx, page)
	if got := evaluate[[][]string](t, ctx, cells); fmt.Sprint(got) != fmt.Sprint(table) {
		t.Error("the page without a choice is another one")
	}
}

// testOrder: the order puts the largest shown difference first, and the worst metric of a target.
func testOrder(t *testing.T, ctx context.Context) {
	open(t, ctx, pageOf(t, sample))
	choose(t, ctx, "order", "on oci/runc")
	sizes := evaluate[[]float64](t, ctx, `(() => { const data = JSON.parse(document.querySelector(".matrix script").textContent); const c = data.targets.indexOf("oci/runc")
		return Array.from(document.querySelectorAll(".matrix tr[data-row]:not([hidden])")).map((row) => data.bases[0][row.dataset.row][c][0] ?? -1e9) })()`)
	if len(sizes) < 3 {
		t.Fatalf("there are %d rows", len(sizes))
	}
	for i := range sizes[1:] {
		if sizes[i] < sizes[i+1] {
			t.Errorf("row %d has the size %v, and the next one %v", i, sizes[i], sizes[i+1])
		}
	}
}

// testHostile: names from runs of others stay text in the cells that the script writes.
func testHostile(t *testing.T, ctx context.Context) {
	const bad = `<img src=x onerror="document.title='run'"></script><script>document.title='run'</script>`
	value := document.Cell{{Text: bad, Tone: document.Bad, Strength: 2}, {Text: bad}}
	row := []document.MatrixCell{{Factor: value, Difference: value, Size: 1, Shown: true}}
	open(t, ctx, written(t, &document.Document{Title: "safe", Blocks: []document.Block{document.Matrix{
		Columns: []string{bad}, Rows: []document.MatrixRow{{ID: bad, Suite: bad, Group: document.Span{Text: bad}, Name: value, Values: []document.Cell{value}}},
		Baselines: []document.MatrixBaseline{{Name: bad, Cells: [][]document.MatrixCell{row}}, {Name: bad + "2", Cells: [][]document.MatrixCell{row}}},
	}}}))
	choose(t, ctx, "base", bad+"2")
	choose(t, ctx, "show", "value")
	if text := evaluate[string](t, ctx, `document.querySelector(".matrix td[class] span").textContent`); text != bad {
		t.Errorf("the cell has %q", text)
	}
	if n := evaluate[int](t, ctx, `document.images.length`); n != 0 || strings.Contains(evaluate[string](t, ctx, "document.title"), "run") {
		t.Errorf("a text of the run has become a part of the page")
	}
}

// testWidths: no page of a report is wider than the window, from a phone to a large screen.
func testWidths(t *testing.T, ctx context.Context) {
	for name, page := range map[string]func() string{"sample": sample, "engines": engines, "suite": suite, "explained": explained} {
		open(t, ctx, pageOf(t, page))
		evaluate[chromedp.Void](t, ctx, `document.querySelectorAll("details").forEach((e) => e.open = true)`)
		for _, width := range []int64{400, 800, 1280, 2560, 3840} {
			must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 1000)))
			if excess := evaluate[int](t, ctx, `document.documentElement.scrollWidth - innerWidth`); excess > 0 {
				t.Errorf("the page of %s is %d px wider than a window of %d px", name, excess, width)
			}
		}
		names := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll("[role=region], nav")).map((e) => e.getAttribute("aria-label"))`)
		labels := map[string]bool{}
		for _, label := range names {
			if labels[label] {
				t.Errorf("two landmarks of %s are named %q", name, label)
			}
			labels[label] = true
		}
	}
}

// testPrint: a printed page has each column, and opens what is folded.
func testPrint(t *testing.T, ctx context.Context) {
	for name, page := range map[string]func() string{"sample": sample, "engines": engines, "suite": suite} {
		open(t, ctx, pageOf(t, page))
		media(t, ctx, "print", "light")
		must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(718, 1000))) // A4 without its margins
		cut := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll("tr:not([hidden]) > td:not([hidden])")).filter((cell) => {
			const box = cell.getBoundingClientRect()
			return !cell.closest("thead") && (box.right > innerWidth + 1 || box.width === 0) }).map((cell) => cell.textContent)`)
		if len(cut) > 0 {
			t.Errorf("%d cells of %s are not on the printed page: %q", len(cut), name, cut[:min(len(cut), 5)])
		}
	}
}
