package compare_test

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// matrixOf is the matrix of a comparison.
func matrixOf(t *testing.T, c *sides.Comparison) document.Matrix {
	t.Helper()
	for _, b := range compare.Document(c).Blocks {
		if s, is := b.(document.Section); is && s.ID == "overview" {
			return s.Blocks[len(s.Blocks)-1].(document.Matrix)
		}
	}
	t.Fatal("the document has no matrix")
	return document.Matrix{}
}

// TestMatrix: each metric has its change and its verdict, only a shown difference has a colour, and a metric of one side has a reason.
func TestMatrix(t *testing.T) {
	for name, c := range map[string]*sides.Comparison{"sides": reporttest.Sides(), "single": reporttest.SingleSides()} {
		m := matrixOf(t, c)
		place := func(title, metric, target string) (value document.Cell, cell document.MatrixCell) {
			row := slices.IndexFunc(m.Rows, func(r document.MatrixRow) bool { return r.ID == title+"/"+metric })
			column := slices.Index(m.Columns, target)
			if row < 0 || column < 0 {
				t.Fatalf("%s: the matrix lacks %s %s on %s", name, title, metric, target)
			}
			return m.Rows[row].Values[column], m.Baselines[0].Cells[row][column]
		}
		for i := range c.Cells {
			k := &c.Cells[i]
			value, cell := place(k.Title(), k.Metric.Name, k.Target)
			hasColour := k.Verdict == stats.Slower || k.Verdict == stats.Faster
			if cell.Factor[0].Text != quantity.ChangeBeside(k.CI, k.Ratio) || cell.Factor[len(cell.Factor)-1].Text != k.Word() || (cell.Factor[0].Strength > 0) != hasColour || hasColour && !cell.Shown {
				t.Errorf("%s: %s %s on %s is %+v", name, k.Title(), k.Metric.Name, k.Target, cell)
			}
			if value[0].Text != quantity.Text(k.B.Median, k.Metric.Unit) || value[1].Text != "A "+quantity.Text(k.A.Median, k.Metric.Unit) {
				t.Errorf("%s: the values of %s are %v", name, k.Metric.Name, value)
			}
		}
		if _, cell := place("a.b.c", "M", "native"); cell.Factor[1].Text != "only A has values" || cell.Shown {
			t.Errorf("%s: the metric of one side is %+v", name, cell)
		}
	}
}
