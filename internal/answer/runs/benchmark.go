package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/figure"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// benchmark is the section of a benchmark.
func (b *builder) benchmark(bench *analysis.Benchmark) document.Section {
	_, facet, _ := strings.Cut(bench.Name, ".")
	s := document.Section{ID: benchmarkID(bench), Title: bench.Title(), Short: b.label(facet, bench)}
	summary := bench.Summary
	switch {
	case b.single:
		summary += remarks(bench.Sections[0])
	case bench.Baseline != "":
		summary += "; compared with " + bench.Baseline
		if bench.Note != "" {
			summary += ", because " + bench.Note
		}
	}
	if derived := bench.Derived(); len(derived) > 0 {
		summary += "; derived, so without a verdict: " + strings.Join(derived, ", ")
	}
	s.Blocks = append(s.Blocks, text(summary))
	if bench.Source != "" {
		s.Blocks = append(s.Blocks, details(document.Text{Text: "Source: " + bench.Source + ".", Tone: document.Faint}))
	}
	if b.single {
		s.Blocks = append(s.Blocks, alone(bench)...)
	} else {
		s.Blocks = append(s.Blocks, b.sideBySide(bench)...)
	}
	return s
}

// details is blocks that only a page shows.
func details(blocks ...document.Block) document.Block {
	return document.Section{Detail: true, Blocks: blocks}
}

// drawn is large blocks that only a page shows.
func drawn(draw func() []document.Block) document.Block {
	return document.Section{Detail: true, Draw: draw}
}

// remarks describe the section of the only run.
func remarks(s *analysis.Section) string {
	if s.Baseline == "" {
		return "; no trial is ok"
	}
	summary := "; " + wording.Counted(s.Blocks, "block")
	if s.BaselineNote != "" {
		summary += "; compared with " + s.Baseline + ", because " + s.BaselineNote
	}
	if len(s.Unbased) > 0 {
		summary += "; no ratio where " + s.Baseline + " has no value: " + strings.Join(s.Unbased, ", ")
	}
	if len(s.Zero) > 0 {
		summary += "; no ratio to the 0 of " + s.Baseline + ": " + strings.Join(s.Zero, ", ")
	}
	return summary
}

// alone is the content of a benchmark in the only run.
func alone(bench *analysis.Benchmark) []document.Block {
	var blocks []document.Block
	s := bench.Sections[0]
	if len(s.Conditions) > 0 {
		var parts []string
		for _, c := range s.Conditions {
			parts = append(parts, c.String())
		}
		blocks = append(blocks, text("Conditions: "+strings.Join(parts, "; ")))
	}
	for i := range s.Breaches {
		blocks = append(blocks, alarm(finding.BreachClause(&s.Breaches[i])+"."))
	}
	if len(s.Unrecorded) > 0 {
		blocks = append(blocks, details(text("Without a value on any target: "+strings.Join(s.Unrecorded, ", ")+".")))
	}
	blocks = append(blocks, details(outcomes(s)))
	blocks = append(blocks, stated(s)...)
	core, partial := byPresence(bench)
	for _, group := range [][]*analysis.Metric{core, partial} {
		if t := metrics(bench, group); len(t.Rows) > 1 {
			blocks = append(blocks, t)
		}
	}
	blocks = append(blocks, drawn(func() []document.Block { return drawings(bench) }))
	blocks = append(blocks, beside(bench)...)
	if len(bench.Metrics) > 0 {
		blocks = append(blocks, document.Section{
			Title: "All statistics", Folded: true, Detail: true, Draw: func() []document.Block { return allStatistics(bench) },
		})
	}
	blocks = append(blocks, trends(bench)...)
	blocks = append(blocks, worsts(bench)...)
	for i := range s.Layers {
		section := layers(&s.Layers[i])
		section.Detail = i > 0 // there is room for one
		blocks = append(blocks, section)
	}
	if bars, ok := phaseBars(s); ok {
		t, hasMany := phases(bench)
		blocks = append(blocks, document.Section{Title: "Phases, median", Detail: !hasMany, Blocks: append([]document.Block{bars}, explained(t, "the target has no such phase.")...)})
	}
	for i := range s.Components {
		c := &s.Components[i]
		blocks = append(blocks, document.Section{Title: c.Title + ", median", Blocks: append([]document.Block{componentBars(c)}, components(c)...)})
	}
	for i := range s.Timelines {
		t := &s.Timelines[i]
		plot := drawn(func() []document.Block { return []document.Block{figure.Timelines(t)} })
		blocks = append(blocks, document.Section{Title: t.Title + " over time: mean, smallest to largest value", Blocks: append([]document.Block{plot}, timelines(t)...)})
	}
	if note := finding.ShownTrials(s); note != "" {
		blocks = append(blocks, text("Timelines are of "+note))
	}
	return blocks
}

// drawings are the figures of the metrics: the samples of each, then the series.
func drawings(bench *analysis.Benchmark) []document.Block {
	var samples, series []document.Block
	for i := range bench.Metrics {
		m := &bench.Metrics[i]
		samples = append(samples, figure.Samples(m, bench.Sections[0].Conditions))
		if plot, ok := figure.Series(m, cmp.Or(bench.Place, "place in the series")); ok {
			series = append(series, plot)
		}
	}
	return append(samples, series...)
}

// beside lists the means and deciles that differ in another way than the typical value.
func beside(bench *analysis.Benchmark) []document.Block {
	var l document.List
	for i := range bench.Metrics {
		m := &bench.Metrics[i]
		for _, r := range m.Rows {
			c := &r.Cells[0]
			if words := quantity.Details(c.Comparison, m.Metric, c.Summary, m.BaselineSummary(0)); words != "" {
				l.Items = append(l.Items, item(r.Target+" "+m.Name+": "+words))
			}
		}
	}
	if l.Items == nil {
		return nil
	}
	return []document.Block{l}
}

// trends are the slope of each series with a trend, and its knee.
func trends(bench *analysis.Benchmark) []document.Block {
	var blocks []document.Block
	for _, m := range bench.Trends() {
		var facts document.Facts
		for _, r := range m.Rows {
			if t := r.Cells[0].Trend; t != nil {
				facts.Items = append(facts.Items, document.Fact{Name: r.Target, Text: quantity.Slope(t, m.Unit) + "; " + finding.TrendNote(t, m.Unit)})
			}
		}
		blocks = append(blocks, document.Section{Title: "Trend of " + m.Name + " per " + m.Trend, Blocks: []document.Block{facts}})
	}
	if blocks != nil {
		blocks = append(blocks, text(finding.TrendLegend))
	}
	return blocks
}

// worsts are the worst case of each time that has one.
func worsts(bench *analysis.Benchmark) []document.Block {
	var blocks []document.Block
	for _, m := range bench.Worsts() {
		var facts document.Facts
		for _, r := range m.Rows {
			if w := r.Cells[0].Worst; w != nil {
				words := finding.Largest(w, m.Unit) + "; " + finding.Bounds(w, m.Unit)
				if rarer := finding.Rarer(w); rarer != "" {
					words += "; " + rarer
				}
				facts.Items = append(facts.Items, document.Fact{Name: r.Target, Text: words})
			}
		}
		blocks = append(blocks, document.Section{Title: "Worst case of " + m.Name, Blocks: []document.Block{facts}})
	}
	if blocks != nil {
		blocks = append(blocks, text(finding.WorstLegend))
	}
	return blocks
}

// stated are the results in words, a paragraph for each target. They can be long messages, so columns would not fit.
func stated(s *analysis.Section) []document.Block {
	var facts document.Facts
	for _, r := range s.StatedRows() {
		var words []string
		for i, result := range r.Texts {
			switch {
			case result == "":
			case i > 0:
				words = append(words, s.Stated[i].Name+": "+result)
			default:
				words = append(words, result)
			}
		}
		if words == nil {
			continue
		}
		fact := document.Fact{Name: r.Target, Text: words[0]}
		for _, note := range words[1:] {
			fact.Notes = append(fact.Notes, document.Span{Text: note})
		}
		facts.Items = append(facts.Items, fact)
	}
	if facts.Items == nil {
		return nil
	}
	return []document.Block{document.Section{Title: "In words", Blocks: []document.Block{facts}}}
}

// sideBySide is a table for each metric, with a column for each run.
func (b *builder) sideBySide(bench *analysis.Benchmark) []document.Block {
	var blocks []document.Block
	if bench.Note != "" && bench.Baseline == "" {
		blocks = append(blocks, alarm(bench.Note+"."))
	}
	var equal []string
	for _, c := range bench.Conditions {
		if c.Differs {
			blocks = append(blocks, text("The conditions differ: "+c.Name()+" "+b.byRun(c, "")))
			continue
		}
		for _, g := range c.Groups() {
			if g.Value != "" {
				equal = append(equal, c.Name()+" "+g.Value)
			}
		}
	}
	if equal != nil {
		blocks = append(blocks, details(text("Conditions: "+strings.Join(equal, "; "))))
	}
	blocks = append(blocks, drawn(func() []document.Block {
		var figures []document.Block
		for i := range bench.Metrics {
			figures = append(figures, b.estimates(bench, &bench.Metrics[i])...)
		}
		return figures
	}))
	var runs []int
	heads := []document.Cell{nil}
	for i, s := range bench.Sections {
		if s == nil {
			continue
		}
		head := lines(b.report.Runs[i].Label)
		if bench.Baseline == "" && s.Baseline != "" {
			head = lines(b.report.Runs[i].Label, "to "+s.Baseline)
		}
		runs, heads = append(runs, i), append(heads, head)
	}
	for i := range bench.Metrics {
		m := &bench.Metrics[i]
		caption := string(m.Better) + " is better"
		if m.Unbased() {
			caption += "; no ratio, because " + m.WhyUnbased(bench.Baseline)
		}
		t := document.Table{Rows: [][]document.Cell{heads}}
		for n := range m.Rows {
			row := &m.Rows[n]
			if !row.Has() {
				continue
			}
			cells := []document.Cell{heading(row.Target, row.Baseline)}
			for _, run := range runs {
				cells = append(cells, sideField(m, &row.Cells[run]))
			}
			t.Rows = append(t.Rows, cells)
		}
		s := document.Section{Title: m.Name + ": " + caption, Blocks: []document.Block{t}}
		if m.Help != "" {
			s.Blocks = append(s.Blocks, details(document.Text{Text: m.Help, Tone: document.Faint}))
		}
		if b.report.AcrossMachines {
			s.Blocks = append(s.Blocks, b.across(m)...)
		}
		blocks = append(blocks, s)
	}
	return blocks
}

// across is the typical costs against the first run.
func (b *builder) across(m *analysis.Metric) []document.Block {
	head := []document.Cell{nil}
	for _, r := range b.report.Runs[1:] {
		head = append(head, lines(r.Label))
	}
	t := document.Table{Rows: [][]document.Cell{head}}
	for _, r := range m.Rows {
		row := []document.Cell{heading(r.Target, false)}
		for _, c := range r.Cells[1:] {
			if c.Across == nil {
				row = append(row, document.Cell{{Text: quantity.None}, {Text: "no value", Tone: document.Faint}})
			} else {
				row = append(row, document.Cell{{Text: quantity.Cost(c.Across.Ratio, m.Metric), Tone: document.Faint}, {Text: quantity.CostInterval(c.Across.CI, m.Metric), Tone: document.Faint}})
			}
		}
		if slices.ContainsFunc(r.Cells[1:], func(c analysis.Cell) bool { return c.Across != nil }) {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 1 {
		return nil
	}
	return []document.Block{text("Across runs: the typical cost by " + m.Name + " against " + b.report.Runs[0].Label + ", without a verdict"), t}
}
