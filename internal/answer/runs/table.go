package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// lines is a cell of plain lines.
func lines(texts ...string) document.Cell {
	var c document.Cell
	for _, s := range texts {
		c = append(c, document.Span{Text: s})
	}
	return c
}

// heading breaks the name of a target before its options.
func heading(target string, baseline bool) document.Cell {
	name, options, has := strings.Cut(target, "@")
	if baseline {
		name += " *"
	}
	if !has {
		return lines(name)
	}
	return lines(name, "@"+options)
}

// metrics is the table of some metrics, with a row for each target that has or lacks one of them.
func metrics(bench *analysis.Benchmark, group []*analysis.Metric) document.Table {
	head := []document.Cell{nil}
	for _, m := range group {
		head = append(head, lines(m.Name))
	}
	t := document.Table{Rows: [][]document.Cell{head}, Turns: true}
	for i, o := range bench.Sections[0].Targets {
		if !slices.ContainsFunc(group, func(m *analysis.Metric) bool { return !m.Rows[i].Cells[0].Absent }) {
			continue
		}
		row := []document.Cell{heading(o.Target, o.Target == bench.Baseline)}
		for _, m := range group {
			row = append(row, field(m, &m.Rows[i].Cells[0]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// fewestPartial is the smallest number of metrics in a table of their own.
const fewestPartial = 3

// byPresence separates metrics that the baseline and other targets lack by their nature, if there are several.
func byPresence(bench *analysis.Benchmark) (core, partial []*analysis.Metric) {
	var list []*analysis.Metric
	for i := range bench.Metrics {
		m := &bench.Metrics[i]
		list = append(list, m)
		if m.Unbased() && slices.ContainsFunc(m.Rows, func(r analysis.Row) bool { return r.Cells[0].Absent }) {
			partial = append(partial, m)
		} else {
			core = append(core, m)
		}
	}
	if len(partial) < fewestPartial {
		return list, nil
	}
	return core, partial
}

// absence is the cell of a missing number.
func absence(c *analysis.Cell) document.Cell {
	return document.Cell{{Text: quantity.None}, {Text: c.Lack, Tone: document.Faint}}
}

// field is the absolute value, the cost, and the verdict if it is no difference.
func field(m *analysis.Metric, c *analysis.Cell) document.Cell {
	if c.Summary == nil {
		return absence(c)
	}
	cell := document.Cell{{Text: value(m, c)}}
	if cost, word := verdict(c.Comparison, m.Metric); cost.Text != "" {
		cell = append(cell, cost)
		if word != "" {
			cell = append(cell, document.Span{Text: word, Tone: document.Faint})
		}
	}
	return cell
}

// sideField is the cost with the verdict, its interval, and the absolute value. A page has the number of trials and the reason of a gap, too.
func sideField(m *analysis.Metric, c *analysis.Cell) document.Cell {
	switch {
	case c.Summary == nil && c.Reason != "":
		return append(absence(c), detail(c.Reason))
	case c.Summary == nil:
		return absence(c)
	}
	cell := costField(m, c)
	if c.Comparison == nil {
		return append(cell, detail(fmt.Sprintf("n = %d", c.Summary.N)))
	}
	return append(cell, document.Span{Text: value(m, c), Tone: document.Faint}, detail(fmt.Sprintf("n = %d, adjusted p %s", c.Comparison.N, quantity.PValue(c.Comparison.Adjusted))))
}

// costField is the cost with the verdict and its interval, or the absolute value without a comparison.
func costField(m *analysis.Metric, c *analysis.Cell) document.Cell {
	var cell document.Cell
	switch {
	case c.Summary == nil:
		return absence(c)
	case c.Baseline:
		cell = document.Cell{{Text: value(m, c)}, {Text: "baseline", Tone: document.Faint}}
	case c.Comparison == nil:
		cell = lines(value(m, c))
	default:
		cost, word := verdict(c.Comparison, m.Metric)
		interval := quantity.CostInterval(c.Comparison.CI, m.Metric)
		switch {
		case analysis.OfPart(c.Comparison): // the interval is of the typical value
			typical := "typical " + quantity.Cost(c.Comparison.Ratio, m.Metric)
			cell = document.Cell{cost, {Text: word, Tone: document.Faint}, {Text: typical, Tone: document.Faint}, {Text: interval, Tone: document.Faint}}
		case word != "":
			cell = document.Cell{cost, {Text: interval + ", " + word, Tone: document.Faint}}
		default:
			cell = document.Cell{cost, {Text: interval, Tone: document.Faint}}
		}
	}
	if m.Breached(c) {
		cell = append(cell, document.Span{Text: m.Bound.Broken, Tone: document.Alarm, Detail: true})
	}
	return cell
}

// detail is a line of a cell that only a page shows.
func detail(text string) document.Span {
	return document.Span{Text: text, Tone: document.Faint, Detail: true}
}

// value is the median, marked if it exceeds the bound of the metric.
func value(m *analysis.Metric, c *analysis.Cell) string {
	median := quantity.Median(c.Summary, m.Unit)
	if m.Breached(c) {
		return "! " + median
	}
	return median
}

// verdict is the cost of a comparison, and the verdict in words if it is no difference or holds for a part alone. Only a shown difference has a colour.
func verdict(c *stats.Comparison, m result.Metric) (cost document.Span, word string) {
	if c == nil {
		return document.Span{}, ""
	}
	cost = document.Span{Text: quantity.DecidingCost(c, m), Tone: document.Faint}
	word = quantity.VerdictWord(c.Verdict, m)
	if quantity.Tier(c) != "" {
		cost.Text += " " + quantity.AloneMark
	}
	switch c.Verdict {
	case stats.Faster:
		cost.Tone, cost.Strength = document.Good, document.Strength(c.DecidingRatio())
		return cost, quantity.DecidingPart(c, m)
	case stats.Slower:
		cost.Tone, cost.Strength = document.Bad, document.Strength(c.DecidingRatio())
		return cost, quantity.DecidingPart(c, m)
	case stats.Mixed:
		word = quantity.Parts(c, m, quantity.Cost)
	case stats.NoDifference:
		word = "no diff."
	case stats.TooNoisy, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Negligible, stats.Withheld:
	}
	if cost.Text == quantity.None {
		return document.Span{Text: word, Tone: document.Faint}, ""
	}
	return cost, word
}

// layers is the addition of each layer. The process is native's row.
func layers(l *analysis.Layers) document.Section {
	head := []document.Cell{nil, lines("whole")}
	for _, name := range analysis.LayerNames()[analysis.RuntimeLayer:] {
		first, rest, _ := strings.Cut(name, " ")
		head = append(head, lines(first, rest))
	}
	head = append(head, lines("remainder"))
	t := document.Table{Rows: [][]document.Cell{head}}
	unclear := false
	for _, s := range l.Stacks {
		row := make([]document.Cell, len(head))
		for i := range row {
			row[i] = lines(quantity.None)
		}
		row[0], row[1] = heading(s.Target, false), difference(s.Total, l.Metric.Unit)
		for _, part := range s.Parts {
			if part.Last == analysis.ProcessLayer {
				continue
			}
			for layer := max(part.First, analysis.RuntimeLayer); layer < part.Last; layer++ {
				row[1+layer] = lines("→")
			}
			cell := difference(part.Difference, l.Metric.Unit)
			if part.Unclear() {
				unclear = true
				cell = append(cell, document.Span{Text: "not shown", Tone: document.Faint})
			}
			row[1+part.Last] = cell
		}
		if len(s.Parts) > 1 {
			row[len(row)-1] = lines(quantity.Signed(s.Remainder, l.Metric.Unit))
		}
		t.Rows = append(t.Rows, row)
	}
	section := document.Section{Title: "Layers of " + l.Metric.Name, Blocks: append([]document.Block{layerBars(l)}, explained(t, "the target has no such layer, or no remainder.")...)}
	for _, n := range finding.LayerNotes(l) {
		section.Blocks = append(section.Blocks, text(n))
	}
	if unclear {
		section.Blocks = append(section.Blocks, text("not shown: the interval includes 0, so no addition or saving by this layer is shown."))
	}
	if l.Merged() {
		section.Blocks = append(section.Blocks, text("→: this layer is included in the layer to its right."))
	}
	return section
}

// explained is a table, and the reason of its dashes if it has some.
func explained(t document.Table, reason string) []document.Block {
	return t.Explained(quantity.None, reason)
}

// difference is a difference, with its interval on a page.
func difference(d stats.Difference, unit result.Unit) document.Cell {
	cell := lines(quantity.Difference(d, unit))
	if d.CI != nil {
		cell = append(cell, detail(quantity.DifferenceInterval(d, unit)))
	}
	return cell
}

// median is a median, with its interval on a page.
func median(s *stats.Summary, unit result.Unit) document.Cell {
	cell := lines(quantity.Text(s.Median, unit))
	if s.CI != nil {
		cell = append(cell, detail(quantity.Interval(s.CI, s.Median, unit)))
	}
	return cell
}

// components is the table of a cost by component. A terminal has only medians, so that it fits.
func components(c *analysis.Components) []document.Block {
	head := []document.Cell{nil, lines("together")}
	for _, name := range c.Names {
		head = append(head, lines(name))
	}
	t := document.Table{Rows: [][]document.Cell{head}}
	for _, r := range c.Rows {
		row := []document.Cell{heading(r.Target, false), median(&r.Total, c.Unit)}
		for _, cell := range r.Cells {
			if cell == nil {
				row = append(row, lines(quantity.None))
			} else {
				row = append(row, median(cell, c.Unit))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return explained(t, "the target has no such component.")
}

// timelines is the table of a group of timelines.
func timelines(group *analysis.Timelines) []document.Block {
	head := []document.Cell{nil}
	for _, name := range group.Names {
		head = append(head, lines(name))
	}
	t := document.Table{Rows: [][]document.Cell{head}}
	for _, p := range group.Panels {
		row := []document.Cell{heading(p.Target, false)}
		for _, l := range p.Lines {
			mean := quantity.None
			switch {
			case l == nil:
				row = append(row, lines(mean))
				continue
			case l.Mean != nil:
				mean = quantity.Signed(*l.Mean, group.Unit)
			}
			row = append(row, document.Cell{{Text: mean}, {Text: quantity.Range(l.Min, l.Max, group.Unit)}})
		}
		t.Rows = append(t.Rows, row)
	}
	return explained(t, "the target has no such timeline.")
}

// phases is the table of median durations of the phases, if any target has several. Steps are columns behind their phase,
// except steps that are metrics.
func phases(bench *analysis.Benchmark) (t document.Table, ok bool) {
	type column struct{ phase, step string }
	var columns []column
	head := []document.Cell{nil}
	add := func(c column, title string, times int) {
		if slices.Contains(columns, c) {
			return
		}
		place := len(columns)
		for i, column := range columns {
			if column.phase == c.phase {
				place = i + 1
			}
		}
		if times > 1 {
			title += fmt.Sprintf(" (each of %d)", times)
		}
		columns = slices.Insert(columns, place, c)
		head = slices.Insert(head, 1+place, lines(title))
	}
	var rows []map[column]string
	for _, o := range bench.Sections[0].Targets {
		ok = ok || len(o.Phases) > 2
		row := map[column]string{}
		for _, phase := range o.Phases {
			add(column{phase.Name, ""}, phase.Name, phase.Times)
			row[column{phase.Name, ""}] = quantity.Text(phase.Seconds, result.Seconds)
			for _, step := range phase.Steps {
				if !slices.ContainsFunc(bench.Metrics, func(m analysis.Metric) bool { return m.Name == step.Name }) {
					add(column{phase.Name, step.Name}, "/"+step.Name, step.Times)
					row[column{phase.Name, step.Name}] = quantity.Text(step.Seconds, result.Seconds)
				}
			}
		}
		rows = append(rows, row)
	}
	t.Rows = append(t.Rows, head)
	for i, o := range bench.Sections[0].Targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := []document.Cell{lines(o.Target)}
		for _, c := range columns {
			row = append(row, lines(cmp.Or(rows[i][c], quantity.None)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, ok
}
