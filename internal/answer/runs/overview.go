package runs

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
)

// overview is metrics and targets by their costs against the baseline, with a column for each run.
type overview struct {
	heads  []document.Cell
	groups []group
	// brief is set if it has only the first metric of each benchmark.
	brief bool
}

// costNote explains the cells of an overview.
const costNote = "Each cell has the cost against the baseline, and its 95 % interval: 2 × is twice the time or half the rate, and below 1 is better. Coloured costs are shown differences, with stronger colours for larger ones. "

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
	if b.single {
		return b.overviewOfRun()
	}
	list := b.report.Benchmarks()
	o := overview{brief: len(list) > mostWhole}
	o.addRuns(b, list)
	if o.groups == nil {
		return nil
	}
	note := costNote + "Each run has its own baseline. Benchmarks of one run alone are below only."
	if o.brief {
		note += " The overview has one metric of each benchmark; the others are with the benchmark."
	}
	t := document.Table{Rows: [][]document.Cell{o.heads}}
	for _, g := range o.groups {
		t.Rows = append(append(t.Rows, []document.Cell{{g.title}}), g.rows...)
	}
	return []document.Block{b.overviewSection(note, t)}
}

// overviewOfRun is the matrix of the only run. A page alone has it, because the comparisons with all baselines take time.
func (b *builder) overviewOfRun() []document.Block {
	if len(b.matrixRows(nil)) == 0 {
		return nil
	}
	s := b.overviewSection(b.matrixNote())
	s.Draw = b.matrix
	return []document.Block{s}
}

func (b *builder) overviewSection(note string, blocks ...document.Block) document.Section {
	s := document.Section{ID: "overview", Title: "Overview", Detail: true, Blocks: []document.Block{text(note)}}
	if withheld := finding.EmulatedNote(b.report.Analysis); withheld != "" {
		s.Blocks = append(s.Blocks, text(withheld))
	}
	s.Blocks = append(s.Blocks, blocks...)
	return s
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
			if m.Unbased() || !m.IsJudged() || o.brief && rows != nil {
				continue
			}
			for n := range m.Rows {
				r := &m.Rows[n]
				if r.Baseline || !r.Has() {
					continue
				}
				row := []document.Cell{append(heading(r.Target, false), document.Span{Text: m.Name, Tone: document.Faint})}
				for c := range r.Cells {
					row = append(row, costField(m, &r.Cells[c]))
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
