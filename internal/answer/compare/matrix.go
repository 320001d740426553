package compare

import (
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// matrixNote explains the cells.
const matrixNote = "Each cell has the change from A to B, and its 95 % interval. Coloured changes are shown differences, with stronger colours for larger ones."

// matrix is the section with all metrics on all targets, for pages.
func matrix(c *sides.Comparison) document.Block {
	entries := make([]document.MatrixEntry, 0, len(c.Cells))
	for i := range c.Cells {
		cell := &c.Cells[i]
		e := document.MatrixEntry{Row: row(cell.Title(), cell.Benchmark, cell.Metric.Name), Column: cell.Target, Value: values(cell), MatrixCell: change(cell)}
		entries = append(entries, e)
	}
	for i := range c.OneSided {
		o := &c.OneSided[i]
		missing := document.Cell{{Text: quantity.None}, {Text: "only " + o.Has + " has values", Tone: document.Faint}}
		for _, m := range o.Metrics {
			title := analysis.Key{Name: o.Benchmark, Params: o.Params}.Title()
			entries = append(entries, document.MatrixEntry{
				Row: row(title, o.Benchmark, m.Name), Column: o.Target, Value: missing, MatrixCell: document.MatrixCell{Factor: missing, Difference: missing, Size: math.NaN()},
			})
		}
	}
	m := document.NewMatrix(entries, document.Cell{{Text: quantity.None}, {Text: "not measured", Tone: document.Faint}})
	return document.Section{ID: "overview", Title: "Overview", Detail: true, Blocks: []document.Block{document.Text{Text: matrixNote}, m}}
}

func row(title, benchmark, metric string) document.MatrixRow {
	suite, _, _ := strings.Cut(benchmark, ".")
	return document.MatrixRow{ID: title + "/" + metric, Suite: suite, Group: document.Span{Text: title}, Name: document.Cell{{Text: metric}}}
}

// values are the values of both sides.
func values(c *sides.Cell) document.Cell {
	return document.Cell{{Text: value(c, &c.B)}, {Text: "A " + value(c, &c.A), Tone: document.Faint}}
}

// change is the ratio of a metric with its interval and its verdict, and the difference of the values.
func change(c *sides.Cell) document.MatrixCell {
	cell := document.MatrixCell{Size: math.Log(c.Metric.Cost(c.Ratio)), Shown: c.Verdict == stats.Slower || c.Verdict == stats.Faster || c.Verdict == sides.MaybeRun}
	ratio := document.Span{Text: quantity.ChangeBeside(c.CI, c.Ratio), Tone: document.Faint}
	if tone := verdictTone(c.Verdict); tone == document.Bad || tone == document.Good {
		ratio.Tone, ratio.Strength = tone, document.Strength(c.Ratio)
	}
	word := document.Span{Text: c.Word()}
	cell.Factor, cell.Difference = document.Cell{ratio}, document.Cell{ratio}
	if c.CI != nil {
		cell.Factor = append(cell.Factor, document.Span{Text: quantity.ChangeInterval(c.CI), Tone: document.Faint})
	}
	cell.Difference[0].Text = quantity.Signed(c.B.Median-c.A.Median, c.Metric.Unit)
	cell.Difference = append(cell.Difference, document.Span{Text: ratio.Text})
	cell.Factor, cell.Difference = append(cell.Factor, word), append(cell.Difference, word)
	return cell
}
