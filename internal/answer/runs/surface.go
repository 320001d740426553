package runs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// surfaces are the surfaces with the headings of their columns.
var surfaces = []struct {
	kind    result.Surface
	heading string
}{{result.SurfaceReached, "Reached"}, {result.SurfaceAllowed, "Allowed"}}

// surface shows the time of a start beside the size of each surface, of a run that has both. No score joins the two, because they have no common unit.
func (b *builder) surface(run *analysis.Run) []document.Block {
	start, _ := b.metric(func(m *result.Metric) bool { return m.Column == result.ColumnStart })
	if start == nil {
		return nil
	}
	plot := document.Plot{Name: start.Name, Caption: "by the system calls of the host; a line is an interval of the time; no axis rates a target", Unit: start.Unit, Axis: "system calls of the host", Across: result.Count}
	for i := range start.Rows {
		plot.Names = append(plot.Names, start.Rows[i].Target)
	}
	head := []string{"", start.Name}
	columns := [][]string{medians(start, plot.Names)}
	var names []document.Block
	for _, s := range surfaces {
		size, key := b.metric(func(m *result.Metric) bool { return m.Surface == s.kind })
		if size == nil {
			continue
		}
		if panel, has := surfacePanel(s.heading+" system calls", start, size); has {
			plot.Panels = append(plot.Panels, panel)
		}
		head, columns = append(head, s.heading), append(columns, medians(size, plot.Names))
		if cells := reached(run, key); s.kind == result.SurfaceReached && cells != nil {
			minimum, total := reachedCounts(cells, plot.Names)
			head, columns = append(head, "in each trial", "in any trial"), append(columns, minimum, total)
			names = append(names, reachedNames(cells))
		}
	}
	if plot.Panels == nil {
		return nil
	}
	t := document.Table{Rows: [][]document.Cell{document.Cells(head...)}}
	for i, target := range plot.Names {
		row := []string{target}
		for _, column := range columns {
			row = append(row, column[i])
		}
		t.Rows = append(t.Rows, document.Cells(row...))
	}
	blocks := []document.Block{
		text("The cost of a start beside the surface: the distinct system calls of the host that small programs in a container reached, by themselves or through their sandbox, and those that the filters allow. No score joins them, because they have no common unit. The numbers do not show safety: no exploit was tried, a reached call may be harmless, and a small surface is no proof."),
	}
	blocks = append(blocks, t.Explained(quantity.None, "the target has no number, for the reasons at the benchmark")...)
	blocks = append(blocks, document.Section{Title: "Cost by surface", Detail: true, Blocks: append([]document.Block{plot}, names...)})
	return []document.Block{document.Section{ID: "surface", Title: "Cost and surface", Blocks: blocks}}
}

// metric is the first metric of the run that matches, with its benchmark. It is nil without one.
func (b *builder) metric(matches func(*result.Metric) bool) (*analysis.Metric, analysis.Key) {
	for _, bench := range b.report.Benchmarks() {
		for i := range bench.Metrics {
			if matches(&bench.Metrics[i].Metric) {
				return &bench.Metrics[i], bench.Key
			}
		}
	}
	return nil, analysis.Key{}
}

// summaryOn is the summary of a metric on a target. It is nil without a number.
func summaryOn(m *analysis.Metric, target string) *stats.Summary {
	i := slices.IndexFunc(m.Rows, func(r analysis.Row) bool { return r.Target == target })
	if i < 0 {
		return nil
	}
	return m.Rows[i].Cells[0].Summary
}

// medians spells the medians of a metric on targets.
func medians(m *analysis.Metric, targets []string) []string {
	var texts []string
	for _, target := range targets {
		texts = append(texts, quantity.Median(summaryOn(m, target), m.Unit))
	}
	return texts
}

// surfaceRoom keeps the largest surface off the edge of its panel.
const surfaceRoom = 1.05

// surfacePanel has a point for each target: its start by the size of its surface. It returns false without a point.
func surfacePanel(name string, start, size *analysis.Metric) (document.Panel, bool) {
	panel := document.Panel{Name: name}
	var texts []string
	for i := range start.Rows {
		target := start.Rows[i].Target
		cost, calls := start.Rows[i].Cells[0].Summary, summaryOn(size, target)
		if cost == nil || calls == nil {
			panel.Lines = append(panel.Lines, nil)
			continue
		}
		panel.Lines = append(panel.Lines, &document.Curve{At: []float64{calls.Median}, Values: []float64{cost.Median}, Intervals: []*stats.Interval{cost.CI}})
		panel.End = max(panel.End, surfaceRoom*calls.Median)
		texts = append(texts, fmt.Sprintf("%s: %s, %s", target, quantity.Median(calls, size.Unit), quantity.Median(cost, start.Unit)))
	}
	panel.Text = fmt.Sprintf("%s by %s; %s", start.Name, size.Name, strings.Join(texts, "; "))
	return panel, texts != nil
}

// reached are the cells of a benchmark whose trials were traced.
func reached(run *analysis.Run, key analysis.Key) []analysis.Traced {
	return slices.DeleteFunc(run.Traced(), func(t analysis.Traced) bool { return t.Key != key })
}

// reachedCounts are the numbers of system calls that a target reaches in each trial, and in any.
func reachedCounts(cells []analysis.Traced, targets []string) (minimum, total []string) {
	for _, target := range targets {
		i := slices.IndexFunc(cells, func(t analysis.Traced) bool { return t.Target == target })
		if i < 0 {
			minimum, total = append(minimum, quantity.None), append(total, quantity.None)
			continue
		}
		core, rest := cells[i].Names(cells[i].Components()...)
		minimum, total = append(minimum, strconv.Itoa(len(core))), append(total, strconv.Itoa(len(core)+len(rest)))
	}
	return minimum, total
}

// reachedNames is the table of the system calls that targets reach, by component. It has no rows without a trace.
func reachedNames(cells []analysis.Traced) document.Block {
	t := document.Table{Listing: true, Prose: true, Rows: [][]document.Cell{document.Cells("Target", "Component", "Calls of each trial", "Calls of some trials")}}
	for i := range cells {
		for n, component := range cells[i].Components() {
			core, rest := cells[i].Names(component)
			target := ""
			if n == 0 {
				target = cells[i].Target
			}
			t.Rows = append(t.Rows, document.Cells(target, component, counted(core), counted(rest)))
		}
	}
	return t
}

// counted is the number of names, and the names.
func counted(names []string) string {
	return strings.TrimSuffix(fmt.Sprintf("%d: %s", len(names), strings.Join(names, " ")), ": ")
}
