package browser

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// figurePage is the page of one figure in a folded section.
func figurePage(t *testing.T, l document.Lanes) string {
	t.Helper()
	return written(t, &document.Document{Title: "views", Blocks: []document.Block{
		document.Section{ID: "benchmark/exec", Title: "Exec", Folded: true, Blocks: []document.Block{l}},
	}})
}

// view chooses a view of the figure.
func view(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	evaluate[chromedp.Void](t, ctx, fmt.Sprintf(`(() => { const select = document.querySelector("figure select"); select.value = %q; select.dispatchEvent(new Event("input", {bubbles: true})) })()`, name))
}

// press clicks a button of the figure.
func press(t *testing.T, ctx context.Context, text string) {
	t.Helper()
	evaluate[chromedp.Void](t, ctx, fmt.Sprintf(`Array.from(document.querySelectorAll("figure button")).find((b) => b.textContent === %q).click()`, text))
}

// table is the values of the view that the figure shows.
func table(t *testing.T, ctx context.Context) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(download(t, ctx, 0, "CSV"))).ReadAll()
	must.Do(t, err)
	return rows
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	must.Do(t, err)
	return v
}

// valuesOf are the values of a lane, sorted.
func valuesOf(l *document.Lanes, lane int) []float64 {
	var values []float64
	for _, s := range l.Lanes[lane].Samples.Values {
		values = append(values, s.Value)
	}
	return stats.Sorted(values)
}

// focus does the same as the keyboard. A browser that saves a file has no focus.
const focus = `document.querySelector("figure svg").dispatchEvent(new FocusEvent("focus"))`

// testViews: the ECDF and the shift function have the numbers of the samples, as a table and in the read-out, and the figure explains them.
func testViews(t *testing.T, ctx context.Context) {
	l := laneOf()
	if messages := errorsOf(t, ctx, figurePage(t, l)); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	evaluate[chromedp.Void](t, ctx, `document.querySelector("details").open = true`)
	view(t, ctx, "ecdf")
	rows := table(t, ctx)[1:]
	if len(rows) != 2*count {
		t.Fatalf("the ECDF has %d values, want %d", len(rows), 2*count)
	}
	for i, row := range rows {
		values := valuesOf(&l, i/count)
		if got, want := number(t, row[1]), values[i%count]; got != want {
			t.Errorf("value %d is %v, want %v", i, got, want)
		}
		if got, want := number(t, row[3]), float64(i%count+1)/count; math.Abs(got-want) > 1e-9 {
			t.Errorf("the share of value %d is %v, want %v", i, got, want)
		}
	}
	index := slices.IndexFunc(l.Lanes[0].Samples.Values, func(s document.Sample) bool { return s.Value == valuesOf(&l, 0)[0] })
	_, sample, _ := strings.Cut(readOut(&l, 0, index), ": ")
	evaluate[chromedp.Void](t, ctx, focus)
	if got, want := status(t, ctx), "native: 1 of 12 values are at most 2 ms; "+sample; got != want {
		t.Errorf("the ECDF reads %q, want %q", got, want)
	}
	checkDrawing(t, download(t, ctx, 0, "SVG"))

	view(t, ctx, "shift")
	rows = table(t, ctx)[1:]
	if len(rows) != stats.Deciles {
		t.Fatalf("the shift function has %d values", len(rows))
	}
	for d, row := range rows {
		share := float64(d+1) / 10
		base, value := stats.Quantile(valuesOf(&l, 0), share), stats.Quantile(valuesOf(&l, 1), share)
		for column, want := range map[int]float64{3: value, 4: base, 5: value - base} {
			if got := number(t, row[column]); math.Abs(got-want) > 1e-12 {
				t.Errorf("decile %d, column %d is %v, want %v", d+1, column, got, want)
			}
		}
		if row[0] != hostileName || row[1] != "native" {
			t.Errorf("decile %d is of %q to %q", d+1, row[0], row[1])
		}
	}
	evaluate[chromedp.Void](t, ctx, focus)
	if got, want := status(t, ctx), hostileName+": the 10 % decile is 21.1 ms, 18.99 ms more than on native"; got != want {
		t.Errorf("the shift function reads %q, want %q", got, want)
	}
	if note := evaluate[string](t, ctx, `document.querySelector("figure .view").textContent`); !strings.Contains(note, "without a test") {
		t.Errorf("the figure says %q", note)
	}
}

// path is the drawing of the figure without its text.
const path = `Array.from(document.querySelectorAll("figure > svg path")).map((p) => p.getAttribute("d")).join("|")`

// testViewAddress: a view is in the address beside the choices of the matrix, the address restores it and opens its section, and the baseline of both is the same.
func testViewAddress(t *testing.T, ctx context.Context) {
	page := figurePage(t, laneOf())
	open(t, ctx, page)
	first := evaluate[string](t, ctx, path)
	view(t, ctx, "ecdf")
	ecdf := evaluate[string](t, ctx, path)
	address := evaluate[string](t, ctx, "location.hash")
	if address != "#p=benchmark/exec/Exec.ecdf" {
		t.Errorf("the address is %q", address)
	}
	view(t, ctx, "shift")
	evaluate[chromedp.Void](t, ctx, fmt.Sprintf(`(() => { const select = document.querySelectorAll("figure select")[1]; select.value = %s; select.dispatchEvent(new Event("input")) })()`, quoted(hostileName)))
	shift := evaluate[string](t, ctx, path)
	base := evaluate[string](t, ctx, "location.hash")
	for hash, want := range map[string]string{address: ecdf, base: shift, "#p=none.ecdf": first, "#p=%3Cimg%3E": first, "#benchmark/exec": first} {
		if messages := errorsOf(t, ctx, page+hash); len(messages) > 0 {
			t.Errorf("%s: the browser reports %q", hash, messages)
		}
		if got := evaluate[string](t, ctx, path); got != want {
			t.Errorf("%s restores another drawing", hash)
		}
		if isOpen := evaluate[bool](t, ctx, `document.querySelector("details").open`); isOpen != (want != first) {
			t.Errorf("%s: the section is open: %v", hash, isOpen)
		}
	}
	evaluate[chromedp.Void](t, ctx, fmt.Sprintf("location.hash = %q", address))
	if ecdf == first || evaluate[string](t, ctx, path) != ecdf {
		t.Error("a change of the address changes nothing")
	}
	view(t, ctx, "order")
	if got := evaluate[string](t, ctx, path+` + location.hash`); got != first {
		t.Error("the first view is another one")
	}

	open(t, ctx, pageOf(t, sample))
	name := evaluate[string](t, ctx, `Array.from(document.querySelectorAll("figure")).find((f) => f.querySelector("select")).closest("section").id`)
	choose(t, ctx, "base", "oci/runc")
	view(t, ctx, "shift")
	if got := evaluate[string](t, ctx, "location.hash"); !strings.HasPrefix(got, "#base=oci/runc&p="+name+"/") {
		t.Errorf("the address is %q", got)
	}
	if got := evaluate[string](t, ctx, `document.querySelectorAll("figure select")[1].value`); got != "oci/runc" {
		t.Errorf("the base of the figure is %q", got)
	}
}

// testLogAxis: a logarithmic axis has each sample at its place.
func testLogAxis(t *testing.T, ctx context.Context) {
	l := laneOf()
	for i := range l.Lanes[1].Samples.Values {
		l.Lanes[1].Samples.Values[i].Value /= 8 // the page chooses a linear axis
	}
	l.Lanes[1].Samples.Median /= 8
	open(t, ctx, figurePage(t, l))
	press(t, ctx, "log axis")
	dots := regexp.MustCompile(`M([0-9.]+) [0-9.]+h0`).FindAllStringSubmatch(evaluate[string](t, ctx, `Array.from(document.querySelectorAll("figure .dots")).map((p) => p.getAttribute("d")).join("")`), -1)
	if len(dots) != 2*count-1 {
		t.Fatalf("%d dots are drawn", len(dots))
	}
	low, high := valuesOf(&l, 0)[0], valuesOf(&l, 1)[count-1]
	x := func(i int) float64 { return number(t, dots[i][1]) }
	scale := (x(len(dots)-count+1+slices.IndexFunc(l.Lanes[1].Samples.Values[1:], func(s document.Sample) bool { return s.Value == high })) - x(0)) / math.Log(high/low)
	for i, s := range l.Lanes[0].Samples.Values {
		if got, want := x(i), x(0)+scale*math.Log(s.Value/low); math.Abs(got-want) > 0.2 {
			t.Errorf("sample %d is at %v, want %v", i, got, want)
		}
	}
	if caption := evaluate[string](t, ctx, `document.querySelector("figcaption").textContent`); !strings.HasSuffix(caption, ", log axis") {
		t.Errorf("the caption is %q", caption)
	}
}

// testPGFPlots: each view is a picture with its values, and TeX typesets it.
func testPGFPlots(t *testing.T, ctx context.Context) {
	l := laneOf()
	open(t, ctx, figurePage(t, l))
	var pictures []string
	for name, places := range map[string]int{"order": 2 * count, "ecdf": 2 * count, "shift": stats.Deciles} {
		view(t, ctx, name)
		picture := download(t, ctx, 0, "TeX")
		if got := len(regexp.MustCompile(`(?m)^\([-0-9.e]+,[-0-9.e]+\)$`).FindAllString(picture, -1)); got != places {
			t.Errorf("the picture %s has %d places, want %d", name, got, places)
		}
		value := fmt.Sprint(l.Lanes[0].Samples.Values[3].Value)
		if name != "shift" && !strings.Contains(picture, value) {
			t.Errorf("the picture %s lacks %s", name, value)
		}
		pictures = append(pictures, picture)
	}
	typeset(t, ctx, pictures)
}

// typeset checks that TeX reads pictures, if it is installed.
func typeset(t *testing.T, ctx context.Context, pictures []string) {
	t.Helper()
	if _, err := exec.LookPath("pdflatex"); err != nil {
		t.Log("no pdflatex")
		return
	}
	dir := t.TempDir()
	const head = "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{pgfplots}\\pgfplotsset{compat=1.18}\\begin{document}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "all.tex"), []byte(head+strings.Join(pictures, "\n\n")+"\\end{document}\n"), 0o600))
	cmd := exec.CommandContext(ctx, "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "all.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("pdflatex: %v\n%s", err, out[max(0, len(out)-2000):])
	}
}

// testFigures: the lines of a plot, a course and stacked bars have a read-out, and download with all their values in each format.
func testFigures(t *testing.T, ctx context.Context) {
	series := document.Plot{Name: "Start", Unit: result.Seconds, Axis: "number of the container", Names: []string{"native", hostileName}, Panels: []document.Panel{{
		End: 3, Lines: []*document.Curve{{At: []float64{1, 2, 3}, Values: []float64{0.001, 0.0025, 0.5}}, {At: []float64{2}, Values: []float64{0.03}}},
	}}}
	course := document.Course{Name: "Run", Unit: result.Bytes, Points: []document.Point{{Labels: []string{"a"}, Value: 1024, Text: "1 KiB"}, {Labels: []string{"b"}, Value: 2048, Text: "2 KiB", Remark: "lost"}}}
	stacks := document.Bars{Unit: result.Seconds, Parts: []string{"create", "start", hostileName}, Bars: []document.Bar{
		{Name: "native", Pieces: []document.Piece{{Value: 0.25, Text: "create 250 ms"}, {First: 1, Last: 2, Value: -0.5, Text: "both"}}}, {Name: hostileName, Pieces: []document.Piece{{First: 1, Last: 1, Value: 1, Text: "start 1 s"}}},
	}}
	low, high := 0.75, 1.5
	estimates := document.Lanes{Name: "Ratio", Unit: result.Score, Groups: []string{"a run", "all runs"}, Lanes: []document.Lane{
		{Name: "all", Marks: []document.Mark{{Group: 1, Value: 1.25, Low: &low, High: &high, Text: "1.25, 0.75 to 1.5"}}}, {Name: hostileName, Marks: []document.Mark{{Value: 1, Text: "1"}, {Value: 1.125, Low: &low, Text: "1.125"}}},
	}}
	address := written(t, &document.Document{Title: "figures", Blocks: []document.Block{estimates, series, course, document.Section{Title: "Layers", Blocks: []document.Block{stacks}}}})
	if messages := errorsOf(t, ctx, address); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	var pictures []string
	for i, want := range []struct {
		table [][]string
		read  string
	}{
		{[][]string{
			{"row", "group", "value", "low", "high", "unit"}, {"all", "all runs", "1.25", "0.75", "1.5", "score"}, {hostileName, "a run", "1", "", "", "score"}, {hostileName, "a run", "1.125", "0.75", "", "score"},
		}, "all: 1.25, 0.75 to 1.5; all: 1.25, 0.75 to 1.5"},
		{[][]string{
			{"line", "place", "place_unit", "value", "unit"}, {"native", "1", "", "0.001", "s"}, {"native", "2", "", "0.0025", "s"}, {"native", "3", "", "0.5", "s"}, {hostileName, "2", "", "0.03", "s"},
		}, "native: number of the container 1, 1 ms; native: number of the container 2, 2.5 ms"},
		{[][]string{{"place", "value", "unit", "note"}, {"1", "1024", "B", "a, 1 KiB"}, {"2", "2048", "B", "b, 2 KiB; lost"}}, "a, 1 KiB; b, 2 KiB; lost"},
		{[][]string{
			{"bar", "part", "value", "unit"}, {"native", "create", "0.25", "s"}, {"native", "start + " + hostileName, "-0.5", "s"}, {hostileName, "start", "1", "s"},
		}, "native: create 250 ms; native: both"},
	} {
		open(t, ctx, address) // a page may save ten files without a click of its reader
		rows, err := csv.NewReader(strings.NewReader(download(t, ctx, i, "CSV"))).ReadAll()
		must.Do(t, err)
		if fmt.Sprint(rows) != fmt.Sprint(want.table) {
			t.Errorf("the table %d is %q, want %q", i, rows, want.table)
		}
		drawing, picture := download(t, ctx, i, "SVG"), download(t, ctx, i, "TeX")
		checkDrawing(t, drawing)
		for _, row := range want.table[1:] {
			if value := row[slices.Index(want.table[0], "value")]; !strings.Contains(picture, value) {
				t.Errorf("the picture %d lacks %s", i, value)
			}
		}
		pictures = append(pictures, picture)
		texts := evaluate[[]string](t, ctx, fmt.Sprintf(`(() => { const figure = document.querySelectorAll("figure")[%d]; const svg = figure.querySelector("svg[tabindex]"); const status = figure.querySelector("[role=status]")
			svg.dispatchEvent(new FocusEvent("focus")); const texts = [status.textContent]
			svg.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"})); texts.push(status.textContent); return texts })()`, i))
		if got := strings.Join(texts, "; "); got != want.read {
			t.Errorf("the figure %d reads %q, want %q", i, got, want.read)
		}
	}
	typeset(t, ctx, pictures)
}
