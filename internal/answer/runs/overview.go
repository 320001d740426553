package runs

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
)

const (
	// mostColumns is the largest number of targets in columns. More targets are rows, because a page has room downwards.
	mostColumns = 8
	// mostWhole is the largest number of benchmarks in an overview of all metrics. Longer overviews have one metric of each.
	mostWhole = 12
)

// overview is metrics and targets by their factors to the baseline. For one run it has a column for each target, or a table for each benchmark
// with a row for each target. For several runs it has a column for each run.
type overview struct {
	heads  []document.Cell
	groups []group
	// partial is set if some metrics are not in it, and brief if it has only the first metric of each benchmark.
	partial, brief bool
}

// group is the rows of a benchmark or of a component. A row begins with its heading.
type group struct {
	title document.Span
	rows  [][]document.Cell
}

// benchmarkID is the ID of the section of a benchmark.
func benchmarkID(bench *analysis.Benchmark) string { return "benchmark/" + bench.Title() }

func link(title string, bench *analysis.Benchmark) document.Span {
	return document.Span{Text: title, Link: "#" + benchmarkID(bench)}
}

// overview is the section of the overview. It is nil without numbers.
func (b *builder) overview() []document.Block {
	list := b.report.Benchmarks()
	o := overview{brief: len(list) > mostWhole}
	if b.single {
		o.addTargets(b, list)
	} else {
		o.addRuns(b, list)
	}
	if o.groups == nil {
		return nil
	}
	note := "Each cell has the ratio to the baseline as a factor in the direction of the difference, and its 95 % interval. Coloured factors are shown differences, with stronger colours for larger factors."
	switch {
	case !b.single:
		note += " Each run has its own baseline. Benchmarks of one run alone are below only."
	case o.partial:
		note += " Metrics without a ratio are with their benchmarks only."
	}
	if o.brief {
		note += " The overview has one metric of each benchmark; the others are with the benchmark."
	}
	s := document.Section{ID: "overview", Title: "Overview", Detail: true, Blocks: []document.Block{text(note)}}
	if withheld := finding.EmulatedNote(b.report.Analysis); withheld != "" {
		s.Blocks = append(s.Blocks, text(withheld))
	}
	if b.single && len(o.heads) > 1+mostColumns {
		for _, g := range o.groups {
			s.Blocks = append(s.Blocks, document.Text(g.title), turned(o.heads, g.rows))
		}
		return []document.Block{s}
	}
	t := document.Table{Rows: [][]document.Cell{o.heads}}
	for _, g := range o.groups {
		t.Rows = append(append(t.Rows, []document.Cell{{g.title}}), g.rows...)
	}
	s.Blocks = append(s.Blocks, t)
	return []document.Block{s}
}

// addTargets adds the benchmarks of the only run. Metrics without a value on the baseline and derived metrics are not among them.
func (o *overview) addTargets(b *builder, list []*analysis.Benchmark) {
	var targets []string
	o.heads = []document.Cell{nil}
	for _, t := range b.report.Runs[0].Targets {
		if t.OK > 0 {
			targets, o.heads = append(targets, t.Name), append(o.heads, heading(t.Name, false))
		}
	}
	for _, bench := range list {
		var rows [][]document.Cell
		for i := range bench.Metrics {
			m := &bench.Metrics[i]
			if m.Unbased() || m.DerivedFrom != "" {
				o.partial = true
				continue
			}
			row := []document.Cell{lines(m.Name)}
			for _, target := range targets {
				index := slices.IndexFunc(m.Rows, func(r analysis.Row) bool { return r.Target == target })
				if index < 0 {
					row = append(row, document.Cell{{Text: quantity.None}, {Text: "not run", Tone: document.Faint}})
				} else {
					row = append(row, factorField(m, &m.Rows[index].Cells[0]))
				}
			}
			rows = append(rows, row)
		}
		switch {
		case len(rows) == 0:
		case o.brief:
			o.addBrief(b, bench, rows)
		default:
			o.groups = append(o.groups, group{link(bench.Title(), bench), rows})
		}
	}
}

// addBrief adds the first row of a benchmark to the group of its component, with the breaches of the other rows.
func (o *overview) addBrief(b *builder, bench *analysis.Benchmark, rows [][]document.Cell) {
	component, facet := componentOf(bench.Name)
	row := rows[0]
	row[0] = append(document.Cell{link(b.label(facet, bench), bench)}, row[0]...)
	isAlarm := func(s document.Span) bool { return s.Tone == document.Alarm }
	for _, line := range rows[1:] {
		for i, cell := range line {
			if n := slices.IndexFunc(cell, isAlarm); n >= 0 && !slices.ContainsFunc(row[i], isAlarm) {
				row[i] = append(row[i], cell[n])
			}
		}
	}
	if last := len(o.groups) - 1; last >= 0 && o.groups[last].title.Text == component {
		o.groups[last].rows = append(o.groups[last].rows, row)
		return
	}
	o.groups = append(o.groups, group{link(component, bench), [][]document.Cell{row}})
}

// turned is a table with a row for each target.
func turned(heads []document.Cell, rows [][]document.Cell) document.Table {
	var t document.Table
	for c, head := range heads {
		row := []document.Cell{head}
		for _, source := range rows {
			row = append(row, source[c])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// addRuns adds the benchmarks of several runs. Benchmarks of one run alone and without a common baseline are not among them.
func (o *overview) addRuns(b *builder, list []*analysis.Benchmark) {
	o.heads = []document.Cell{nil}
	for i := range b.report.Runs {
		o.heads = append(o.heads, lines(b.report.Runs[i].Label))
	}
	for _, bench := range list {
		runs := 0
		for _, s := range bench.Sections {
			if s != nil {
				runs++
			}
		}
		if runs < 2 || bench.Baseline == "" {
			continue
		}
		var rows [][]document.Cell
		for i := range bench.Metrics {
			m := &bench.Metrics[i]
			if m.Unbased() || m.DerivedFrom != "" || o.brief && rows != nil {
				continue
			}
			for n := range m.Rows {
				r := &m.Rows[n]
				if r.Baseline || !r.Has() {
					continue
				}
				row := []document.Cell{append(heading(r.Target, false), document.Span{Text: m.Name, Tone: document.Faint})}
				for c := range r.Cells {
					row = append(row, factorField(m, &r.Cells[c]))
				}
				rows = append(rows, row)
			}
		}
		if rows != nil {
			o.groups = append(o.groups, group{link(bench.Title(), bench), rows})
		}
	}
}

// componentOf splits a name into its first two components and the rest.
func componentOf(name string) (component, facet string) {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return name, name
	}
	return parts[0] + "." + parts[1], parts[2]
}
