package runs

import (
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
)

const (
	// mostPairedBlocks is the largest number of blocks in the comparisons of all targets with each other. A comparison of ten blocks takes a millisecond, and
	// a page must not take minutes.
	mostPairedBlocks = 40_000
	// mostWhole is the largest number of benchmarks whose matrix has all metrics at first. A longer one has one metric of each.
	mostWhole = 12
)

// matrixRow is a metric of the only run in the matrix.
type matrixRow struct {
	document.MatrixRow
	bench  *analysis.Benchmark
	metric *analysis.Metric
}

// matrix is the table of all metrics on all targets of the only run. It has the comparisons with each baseline unless they are too many.
func (b *builder) matrix() []document.Block {
	var targets []string
	for _, t := range b.report.Runs[0].Targets {
		if t.OK > 0 {
			targets = append(targets, t.Name)
		}
	}
	rows := b.matrixRows(targets)
	m := document.Matrix{Columns: targets}
	for _, r := range rows {
		m.Rows = append(m.Rows, r.MatrixRow)
	}
	for _, baseline := range b.baselines(targets) {
		numbers := b.report.Against(0, baseline)
		list := document.MatrixBaseline{Name: baseline}
		for _, r := range rows {
			var cells []document.MatrixCell
			for _, target := range targets {
				cells = append(cells, r.against(target, &numbers))
			}
			list.Cells = append(list.Cells, cells)
		}
		m.Baselines = append(m.Baselines, list)
	}
	return []document.Block{m}
}

// baselines are the baselines of the matrix. The first one is the run's baseline.
func (b *builder) baselines(targets []string) []string {
	first := b.report.Runs[0].Baseline
	if !slices.Contains(targets, first) {
		first = targets[0]
	}
	list := []string{first}
	if !b.hasAllBaselines() {
		return list
	}
	for _, target := range targets {
		if target != first {
			list = append(list, target)
		}
	}
	return list
}

func (b *builder) hasAllBaselines() bool { return b.report.PairedBlocks(0) <= mostPairedBlocks }

// matrixRows are the metrics with a value on some target. Derived metrics and metrics that the baseline lacks are with their benchmarks only.
func (b *builder) matrixRows(targets []string) []matrixRow {
	var rows []matrixRow
	isBrief := len(b.report.Benchmarks()) > mostWhole
	for i := range b.report.Suites {
		suite := &b.report.Suites[i]
		for n := range suite.Benchmarks {
			bench := &suite.Benchmarks[n]
			count := 0
			for k := range bench.Metrics {
				m := &bench.Metrics[k]
				if m.Unbased() || !m.IsJudged() {
					continue
				}
				row := matrixRow{document.MatrixRow{ID: bench.Title() + "/" + m.Name, Suite: suite.Name, Group: link(bench.Title(), bench), Name: lines(m.Name)}, bench, m}
				if isBrief {
					component, facet := componentOf(bench.Name)
					row.Group = document.Span{Text: component}
					row.Name, row.Rest = append(document.Cell{link(b.label(facet, bench), bench)}, row.Name...), count > 0 && !breached(m)
				}
				for _, target := range targets {
					row.Values = append(row.Values, row.value(target))
				}
				rows, count = append(rows, row), count+1
			}
		}
	}
	return rows
}

// breached reports whether a target exceeds the bound of the metric. Such a row is always shown.
func breached(m *analysis.Metric) bool {
	return slices.ContainsFunc(m.Rows, func(r analysis.Row) bool { return m.Breached(&r.Cells[0]) })
}

// row is the index of a target in the rows of the metric. It is -1 without one.
func (r *matrixRow) row(target string) int {
	return slices.IndexFunc(r.metric.Rows, func(row analysis.Row) bool { return row.Target == target })
}

// value is the absolute value of a cell.
func (r *matrixRow) value(target string) document.Cell {
	index := r.row(target)
	if index < 0 {
		return notRun()
	}
	c := r.metric.Rows[index].Cells[0]
	c.Comparison, c.Baseline = nil, false
	return costField(r.metric, &c)
}

func notRun() document.Cell {
	return document.Cell{{Text: quantity.None}, {Text: "not run", Tone: document.Faint}}
}

// against is a cell compared with a baseline.
func (r *matrixRow) against(target string, a *analysis.Against) document.MatrixCell {
	index := r.row(target)
	if index < 0 {
		return document.MatrixCell{Factor: notRun(), Difference: notRun(), Size: math.NaN()}
	}
	c := r.metric.Rows[index].Cells[0] // a copy with another comparison
	c.Baseline = target == a.Baselines[r.bench]
	var difference float64
	if c.Comparison = nil; a.Cells[r.metric] != nil {
		c.Comparison, difference = a.Cells[r.metric][index].Comparison, a.Cells[r.metric][index].Difference
	}
	cell := document.MatrixCell{Factor: costField(r.metric, &c), Size: math.NaN(), Shown: c.Comparison.Differs()}
	cell.Difference = cell.Factor
	if c.Comparison == nil || c.Summary == nil {
		return cell
	}
	cell.Size = math.Log(r.metric.Cost(c.Comparison.Ratio))
	value := cell.Factor[0]
	value.Text = quantity.Signed(difference, r.metric.Unit)
	cost, word := verdict(c.Comparison, r.metric.Metric)
	cell.Difference = document.Cell{value, {Text: cost.Text, Tone: document.Faint}}
	if word != "" {
		cell.Difference = append(cell.Difference, document.Span{Text: word, Tone: document.Faint})
	}
	return cell
}

// matrixNote explains the matrix.
func (b *builder) matrixNote() string {
	note := costNote + "Metrics without a ratio are with their benchmarks only."
	if !b.hasAllBaselines() {
		note += " The comparisons of all targets with each other are too many for one page, so it has one baseline."
	}
	return note
}
