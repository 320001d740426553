package browser

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answerab "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	answerfleet "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	answerhistory "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// answer is a page with a matrix of one baseline.
type answer struct {
	document *document.Document
	// factors are the first lines of cells by row and column, and shown are the rows with a shown difference.
	factors map[[2]string]string
	shown   map[string]bool
}

func (a *answer) add(row, column, factor string, isShown bool) {
	if a.factors == nil {
		a.factors, a.shown = map[[2]string]string{}, map[string]bool{}
	}
	a.factors[[2]string{row, column}] = factor
	a.shown[row] = a.shown[row] || isShown
}

func comparison() answer {
	c := reporttest.Sides()
	a := answer{document: compare.Document(c)}
	for i := range c.Cells {
		k := &c.Cells[i]
		a.add(k.Title()+"/"+k.Metric.Name, k.Target, quantity.ChangeBeside(k.CI, k.Ratio), k.Notable())
	}
	a.add("a.b.c/M", "native", quantity.None, false)
	return a
}

func builds() answer {
	c := reporttest.Builds()
	a := answer{document: answerab.Document(c)}
	for i := range c.Values {
		v := &c.Values[i]
		row := v.Title() + "/" + v.Metric
		a.add(row, "all runs", v.RatioText(), v.Hi != nil && *v.Hi < 1 || v.Lo != nil && *v.Lo > 1)
		for n := range v.Ratios {
			a.add(row, fmt.Sprintf("run %d", n+1), v.Ratios[n].RatioText(), false)
		}
	}
	return a
}

func reproduction() answer {
	r := reporttest.Study()
	a := answer{document: study.Document(r, nil)}
	for _, row := range r.Tables[0].Cells[:2] {
		id := "table 1/" + reproduce.Title(row[0].Of)
		a.add(id, "native", row[0].Value(), false)
		ci, published := row[1].Ratio.CI, row[1].Published
		a.add(id, "oci/runc", quantity.Number(row[1].Ratio.Ratio), published < ci.Lo || published > ci.Hi)
	}
	return a
}

func twoTargets() (history.History, answer) {
	b := history.NewBuilder("Create", func(result.Cell) bool { return true })
	for _, r := range reporttest.TwoTargets() {
		b.Add(r)
	}
	h := b.History()
	a := answer{document: answerhistory.Document(&h)}
	for i := range h.Series {
		s := &h.Series[i]
		factor := quantity.None
		if n := len(s.Changes); n > 0 {
			factor = quantity.Change(s.Changes[n-1].Ratio)
		}
		a.add("a.b.c bench1", s.Target, factor, len(s.Changes) > 0)
	}
	return h, a
}

func cluster() answer {
	b := fleet.NewBuilder(analysis.Options{})
	for _, run := range reporttest.Cluster() {
		if err := b.Add(&run); err != nil {
			panic(err)
		}
	}
	r, err := b.Report()
	if err != nil {
		panic(err)
	}
	a := answer{document: answerfleet.Document(r, func(run string) string { return "report-" + run + ".html" })}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		row := m.Title() + "/" + m.Metric.Name + "/"
		for n := range m.Classes {
			c := &m.Classes[n]
			cost, isDifference := quantity.Cost(1, m.Metric), false
			if c.Comparison != nil {
				cost, isDifference = quantity.Cost(c.Comparison.Ratio, m.Metric), c.Comparison.Differs()
			}
			a.add(row+"all", c.Target, cost, isDifference)
			for node := range c.Values {
				v := &c.Values[node]
				cost := quantity.Cost(v.Ratio, m.Metric)
				if c.Baseline && !math.IsNaN(v.Median) {
					cost = quantity.Cost(1, m.Metric)
				}
				a.add(row+r.Nodes[node].Run, c.Target, cost, slices.ContainsFunc(c.Odd, func(o fleet.Odd) bool { return o.Node == node }))
			}
		}
	}
	return a
}

func answers() map[string]answer {
	_, series := twoTargets()
	return map[string]answer{"comparison": comparison(), "two builds": builds(), "history": series, "reproduction": reproduction(), "fleet": cluster()}
}

// TestAnswers: the page of each answer with a matrix has the numbers of its analysis, filters, keeps a choice in its address, and fits a phone.
func TestAnswers(t *testing.T) {
	ctx := tab(t)
	for name, a := range answers() {
		t.Run(name, func(t *testing.T) { testAnswer(t, ctx, &a) })
	}
	t.Run("course", func(t *testing.T) { testCourse(t, ctx) })
	t.Run("strips", func(t *testing.T) { testStrips(t, ctx) })
}

// testStrips: the strip of a target has a dot for each node with a ratio, its odd nodes are marks with names, and each node links to its page.
func testStrips(t *testing.T, ctx context.Context) {
	open(t, ctx, written(t, cluster().document))
	marks := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll("#strips svg title")).map((title) => title.textContent)`)
	if !slices.ContainsFunc(marks, func(text string) bool { return strings.HasPrefix(text, "worker-04 (m5.large) 1.8") }) {
		t.Errorf("no mark names the odd node: %q", marks)
	}
	lanes := evaluate[string](t, ctx, `document.querySelector("#strips svg").textContent`)
	if !strings.Contains(lanes, "odd: worker-04") {
		t.Errorf("no strip names the odd node: %q", lanes)
	}
	if links := evaluate[int](t, ctx, `document.querySelectorAll("#nodes a[href^='report-']").length`); links != 14 {
		t.Errorf("%d nodes have a link, want 14", links)
	}
}

const rowNames = `(() => { const rows = JSON.parse(document.querySelector(".matrix script").textContent).rows
	return Array.from(document.querySelectorAll(".matrix tr[data-row]:not([hidden])")).map((row) => rows[row.dataset.row].id) })()`

func testAnswer(t *testing.T, ctx context.Context, a *answer) {
	page := written(t, a.document)
	if messages := errorsOf(t, ctx, page); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	if evaluate[bool](t, ctx, `document.querySelector("[name=base]") !== null`) {
		t.Error("a page with one baseline has a choice of it")
	}
	columns := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix thead th")).map((head) => head.textContent)`)
	// check compares the visible cells with the analysis, and returns their number.
	check := func() (rows []string, count int) {
		rows = evaluate[[]string](t, ctx, rowNames)
		for i, texts := range evaluate[[][]string](t, ctx, cells) {
			for c, text := range texts {
				if want, ok := a.factors[[2]string{rows[i], columns[c]}]; ok {
					if count++; text != want {
						t.Errorf("%s in %s is %q, want %q", rows[i], columns[c], text, want)
					}
				}
			}
		}
		return rows, count
	}
	rows, count := check()
	if count != len(a.factors) || len(rows) != len(a.shown) {
		t.Errorf("the page has %d rows and %d of %d numbers", len(rows), count, len(a.factors))
	}
	choose(t, ctx, "shown", "1")
	choose(t, ctx, "order", "size")
	rows, _ = check()
	for _, row := range rows {
		if !a.shown[row] {
			t.Errorf("%s has no shown difference", row)
		}
	}
	want := evaluate[[][]string](t, ctx, cells)
	address := evaluate[string](t, ctx, "location.hash")
	open(t, ctx, page+address)
	if got := evaluate[[][]string](t, ctx, cells); len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s restores %v, want %v", address, got, want)
	}
	checkWidths(t, ctx)
}

// checkWidths holds that the page is not wider than a phone or a small screen.
func checkWidths(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, width := range []int64{400, 1200} {
		must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 1000)))
		if excess := evaluate[int](t, ctx, `document.documentElement.scrollWidth - innerWidth`); excess > 0 {
			t.Errorf("the page is %d px wider than a window of %d px", excess, width)
		}
	}
}

// testCourse: each run of a series has its words, and the line through its dot is the interval of its median.
func testCourse(t *testing.T, ctx context.Context) {
	h, a := twoTargets()
	open(t, ctx, written(t, a.document))
	s := &h.Series[0]
	dots := evaluate[[]string](t, ctx, `Array.from(document.querySelector(".course svg").querySelectorAll("circle.dot")).map((dot) => dot.textContent)`)
	// The parts of an interval below and above the dot, in units of the drawing.
	parts := evaluate[[][]float64](t, ctx, `Array.from(document.querySelector(".course svg").querySelectorAll(".whisker")).map((line) => {
		const [low, high] = line.getAttribute("d").match(/ ([0-9.]+)V([0-9.]+)/).slice(1).map(Number)
		const dot = Number(line.nextElementSibling.getAttribute("cy"))
		return [low - dot, dot - high] })`)
	if len(dots) != len(s.Points) || len(parts) != len(s.Points) {
		t.Fatalf("%d runs have %d dots and %d intervals", len(s.Points), len(dots), len(parts))
	}
	for i := range s.Points {
		p := &s.Points[i]
		ci := p.Interval()
		want := strings.Join([]string{p.StartedText(), p.Run, quantity.Text(p.Value, s.Metric.Unit), "10 trials; 95 % interval " + quantity.Interval(ci, p.Value, s.Metric.Unit)}, ", ")
		if dots[i] != want {
			t.Errorf("a dot has the words %q, want %q", dots[i], want)
		}
		if got, want := parts[i][0]/(parts[i][0]+parts[i][1]), (p.Value-ci.Lo)/(ci.Hi-ci.Lo); math.Abs(got-want) > 0.05 {
			t.Errorf("the dot of %s is at %.3f of its interval, want %.3f", p.Run, got, want)
		}
	}
}
