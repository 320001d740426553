package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// gap is the number of blanks between columns.
const gap = 3

// entry is a field of a table: up to three lines, of which the second and third may be empty.
type entry struct {
	top, below string
	style      style // of the second line, or of the first if there is none
	// lead is the style of the first line, unless the field is a heading.
	lead style
	// third is the third line, which is dim.
	third string
}

func (e entry) width() int {
	return max(utf8.RuneCountInString(e.top), utf8.RuneCountInString(e.below), utf8.RuneCountInString(e.third))
}

// table has an entry in each cell; rows and columns have headings.
type table struct {
	rows, columns []entry
	cells         [][]entry // by row
}

// turned is the table with rows and columns exchanged.
func (t table) turned() table {
	out := table{rows: t.columns, columns: t.rows}
	for c := range t.columns {
		var row []entry
		for r := range t.rows {
			row = append(row, t.cells[r][c])
		}
		out.cells = append(out.cells, row)
	}
	return out
}

func (t table) labelWidth() int {
	var w int
	for _, r := range t.rows {
		w = max(w, r.width())
	}
	return w
}

func (t table) columnWidth(c int) int {
	w := t.columns[c].width()
	for _, row := range t.cells {
		w = max(w, row[c].width())
	}
	return w
}

// parts splits the columns into stretches that fit into width, each of one column at least.
func (t table) parts(width int) [][]int {
	var all [][]int
	var part []int
	used := t.labelWidth()
	for c := range t.columns {
		need := gap + t.columnWidth(c)
		if len(part) > 0 && used+need > width {
			all = append(all, part)
			part, used = nil, t.labelWidth()
		}
		part = append(part, c)
		used += need
	}
	return append(all, part)
}

// benchmark writes a benchmark: a row a target if that fits, else a row a metric.
func (p *printer) benchmark(b *report.Benchmark) {
	p.title(clean(b.Title()))
	about := fmt.Sprintf("%s; %d blocks", clean(b.Summary), b.Blocks)
	if b.Baseline == "" {
		about = clean(b.Summary) + "; no trial is ok"
	} else if b.BaselineNote != "" {
		about += "; compared with " + b.Baseline + ", as " + b.BaselineNote
	}
	if len(b.Unbased) > 0 {
		about += "; no ratio where " + b.Baseline + " has no value: " + strings.Join(b.Unbased, ", ")
	}
	p.wrapped("  ", about)
	if len(b.Conditions) > 0 {
		var parts []string
		for _, c := range b.Conditions {
			parts = append(parts, c.String())
		}
		p.wrapped("  ", "Measured under: "+strings.Join(parts, "; "))
	}
	for i := range b.Breaches {
		p.alarm(b.Breaches[i].Short() + ".")
	}
	common, partial := byPresence(b)
	for _, some := range [][]*report.Metric{common, partial} {
		t := metrics(b, some)
		if len(t.rows) == 0 {
			continue
		}
		if turned := t.turned(); len(t.parts(p.width-2)) > 1 && len(turned.parts(p.width-2)) <= len(t.parts(p.width-2)) {
			t = turned
		}
		p.table(t)
	}
	if len(b.Layers) > 0 {
		p.layers(&b.Layers[0])
	}
	if t, ok := phases(b); ok {
		p.line("")
		p.line("  Phases, median")
		p.table(t)
	}
	for i := range b.Components {
		p.line("")
		p.line("  " + b.Components[i].Title + ", median")
		p.table(components(&b.Components[i]))
	}
}

// layers writes what each layer adds. What the process takes is native's row.
func (p *printer) layers(l *report.Layers) {
	p.line("")
	p.line("  Layers: what each adds to " + clean(l.Metric.Name))
	t := table{columns: []entry{{top: "whole"}}}
	unclear := false
	for _, name := range report.LayerNames()[report.RuntimeLayer:] {
		first, rest, _ := strings.Cut(name, " ")
		t.columns = append(t.columns, entry{top: first, below: rest})
	}
	t.columns = append(t.columns, entry{top: "remainder"})
	for _, s := range l.Stacks {
		row := make([]entry, len(t.columns))
		for i := range row {
			row[i] = entry{top: report.None, style: dim}
		}
		row[0] = entry{top: report.Difference(s.Total, l.Metric.Unit)}
		for _, part := range s.Parts {
			if part.Last == report.ProcessLayer {
				continue
			}
			for layer := max(part.First, report.RuntimeLayer); layer < part.Last; layer++ {
				row[layer] = entry{top: "→"}
			}
			row[part.Last] = entry{top: report.Difference(part.Difference, l.Metric.Unit)}
			if part.Unclear() {
				unclear = true
				row[part.Last].below, row[part.Last].style = "not shown", dim
			}
		}
		if len(s.Parts) > 1 {
			row[len(row)-1].top = report.Signed(s.Remainder, l.Metric.Unit)
		}
		t.rows = append(t.rows, heading(s.Target, false))
		t.cells = append(t.cells, row)
	}
	p.table(t)
	p.line("")
	for _, n := range l.Notes() {
		p.wrapped("  ", n)
	}
	if unclear {
		p.wrapped("  ", "not shown: the interval holds 0, so that the layer is not shown to add or to take away anything.")
	}
	if l.Merged() {
		p.wrapped("  ", "→ is with the layer to its right.")
	}
}

// components is the table of a cost by component: medians alone, so that it fits.
func components(c *report.Components) table {
	t := table{columns: []entry{{top: "together"}}}
	for _, name := range c.Names {
		t.columns = append(t.columns, entry{top: clean(name)})
	}
	for _, r := range c.Rows {
		row := []entry{{top: report.Quantity(r.Total.Median, c.Unit)}}
		for _, cell := range r.Cells {
			e := entry{top: report.None}
			if cell != nil {
				e.top = report.Quantity(cell.Median, c.Unit)
			}
			row = append(row, e)
		}
		t.rows = append(t.rows, heading(r.Target, false))
		t.cells = append(t.cells, row)
	}
	return t
}

// byPresence tells the metrics that some targets have by their nature, and the baseline does not,
// from the others, if there are several.
func byPresence(b *report.Benchmark) (common, partial []*report.Metric) {
	var all []*report.Metric
	for i := range b.Metrics {
		m := &b.Metrics[i]
		all = append(all, m)
		if slices.Contains(b.Unbased, m.Name) && slices.ContainsFunc(m.Cells, func(c report.Cell) bool { return c.Absent }) {
			partial = append(partial, m)
		} else {
			common = append(common, m)
		}
	}
	if len(partial) < fewestPartial {
		return all, nil
	}
	return common, partial
}

// fewestPartial is how many metrics are worth a table of their own.
const fewestPartial = 3

// metrics is the table of some metrics with a row for each target, but for those that have none of
// them by their nature.
func metrics(b *report.Benchmark, some []*report.Metric) table {
	var t table
	for _, m := range some {
		t.columns = append(t.columns, entry{top: clean(m.Name)})
	}
	for i, o := range b.Targets {
		if !slices.ContainsFunc(some, func(m *report.Metric) bool { return !m.Cells[i].Absent }) {
			continue
		}
		t.rows = append(t.rows, heading(o.Target, o.Target == b.Baseline))
		var row []entry
		for _, m := range some {
			row = append(row, field(m, &m.Cells[i], &b.Targets[i]))
		}
		t.cells = append(t.cells, row)
	}
	return t
}

// heading breaks a target's name before its options.
func heading(target string, baseline bool) entry {
	name, options, has := strings.Cut(clean(target), "@")
	e := entry{top: name}
	if has {
		e.below = "@" + options
	}
	if baseline {
		e.top += " *"
	}
	return e
}

func field(m *report.Metric, c *report.Cell, o *report.Outcome) entry {
	if c.Summary == nil {
		e := entry{top: report.None, style: dim}
		if !c.Absent {
			e.below = o.Lack()
		}
		return e
	}
	e := entry{top: report.Median(c.Summary, m.Unit)}
	if m.Breached(c) {
		e.top = alarmMark + e.top
	}
	if c.Comparison == nil {
		return e
	}
	word := report.VerdictWord(c.Comparison.Verdict, m.Unit)
	switch c.Comparison.Verdict {
	case stats.Faster:
		e.style = green
	case stats.Slower:
		e.style = red
	case stats.NoDifference:
		word, e.style = "no diff.", dim
	case stats.TooNoisy, stats.TooFew, stats.NotComparable:
		e.style = dim
	}
	e.below = word
	if ratio := report.Ratio(c.Comparison.Ratio); ratio != report.None {
		e.below = ratio + " " + word
	}
	return e
}

// phases is the table of median durations of the phases, if any target has several. A step of a phase
// is a column behind it, unless it stands among the metrics already.
func phases(b *report.Benchmark) (table, bool) {
	var t table
	at := map[string]int{}
	several := false
	column := func(key string, ph report.Phase, lead string) {
		if _, known := at[key]; known {
			return
		}
		at[key] = len(t.columns)
		name := lead + clean(ph.Name)
		if ph.Times > 1 {
			name += fmt.Sprintf(" (each of %d)", ph.Times)
		}
		t.columns = append(t.columns, entry{top: name})
	}
	isMetric := func(name string) bool {
		return slices.ContainsFunc(b.Metrics, func(m report.Metric) bool { return m.Name == name })
	}
	for _, o := range b.Targets {
		several = several || len(o.Phases) > 2
	}
	for _, ph := range phasesOf(b) {
		column(ph.Name, ph, "")
		for _, step := range ph.Steps {
			if !isMetric(step.Name) {
				column(ph.Name+"/"+step.Name, step, "/")
			}
		}
	}
	for _, o := range b.Targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := make([]entry, len(t.columns))
		for i := range row {
			row[i].top = report.None
		}
		for _, ph := range o.Phases {
			row[at[ph.Name]].top = report.Quantity(ph.Seconds, result.Seconds)
			for _, step := range ph.Steps {
				if i, shown := at[ph.Name+"/"+step.Name]; shown {
					row[i].top = report.Quantity(step.Seconds, result.Seconds)
				}
			}
		}
		t.rows = append(t.rows, entry{top: clean(o.Target)})
		t.cells = append(t.cells, row)
	}
	return t, several
}

// phasesOf gives the phases of all targets in the order in which they first come, each with the steps
// that any target has.
func phasesOf(b *report.Benchmark) []report.Phase {
	var all []report.Phase
	merge := func(phases []report.Phase, ph report.Phase) ([]report.Phase, int) {
		at := slices.IndexFunc(phases, func(known report.Phase) bool { return known.Name == ph.Name })
		if at < 0 {
			phases, at = append(phases, report.Phase{Name: ph.Name, Times: ph.Times}), len(phases)
		}
		return phases, at
	}
	for _, o := range b.Targets {
		for _, ph := range o.Phases {
			var at int
			all, at = merge(all, ph)
			for _, step := range ph.Steps {
				all[at].Steps, _ = merge(all[at].Steps, step)
			}
		}
	}
	return all
}

func (p *printer) table(t table) {
	label := t.labelWidth()
	for _, part := range t.parts(p.width - 2) {
		p.line("")
		head := make([]entry, len(part))
		for i, c := range part {
			head[i] = t.columns[c]
			head[i].style = bold
		}
		p.row(t, entry{}, head, part, label)
		for r := range t.rows {
			cells := make([]entry, len(part))
			for i, c := range part {
				cells[i] = t.cells[r][c]
			}
			p.row(t, t.rows[r], cells, part, label)
		}
	}
}

// row writes the lines of a row.
func (p *printer) row(t table, heading entry, cells []entry, part []int, label int) {
	isHead := heading == entry{}
	top := "  " + p.padded(heading.top, label, plain, false)
	below := "  " + p.padded(heading.below, label, plain, false)
	last := "  " + p.padded("", label, plain, false)
	second, third := heading.below != "", false
	for i, e := range cells {
		width := gap + t.columnWidth(part[i])
		topStyle := e.lead
		if isHead {
			topStyle = bold
		}
		top += p.padded(e.top, width, topStyle, true)
		below += p.padded(e.below, width, e.style, true)
		last += p.padded(e.third, width, dim, true)
		second, third = second || e.below != "", third || e.third != ""
	}
	p.line(top)
	if second || third {
		p.line(below)
	}
	if third {
		p.line(last)
	}
}

// padded fills s up with blanks, which are not styled.
func (p *printer) padded(s string, width int, st style, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return blanks + p.styled(s, st)
	}
	return p.styled(s, st) + blanks
}
