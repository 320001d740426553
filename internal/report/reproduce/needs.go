package reproduce

import (
	"cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// Needs reports whether a table has values of a benchmark on a target, or needs it as the reference. An empty target stands for any.
func Needs(p paper.Paper, table string, key analysis.Key, target string) bool {
	needed := false
	each(p, table, func(t *paper.Table, of paper.Of) {
		if of.Unmeasured != "" || of.Target == "" || key.Name != of.Benchmark || !fits(of.Params, key.Params) {
			return
		}
		needed = needed || target == "" || target == of.Target || target == referenceOf(t, of)
	})
	return needed
}

// WhyNothing is the reason why nothing of a table can be measured.
func WhyNothing(p paper.Paper, table string) string {
	reason := ""
	each(p, table, func(_ *paper.Table, of paper.Of) { reason = cmp.Or(reason, of.Unmeasured) })
	return cmp.Or(reason, "no plan of the study has its benchmarks and targets")
}

// each calls a function for each cell of a table.
func each(p paper.Paper, table string, do func(*paper.Table, paper.Of)) {
	for i := range p.Tables {
		t := &p.Tables[i]
		for row := range t.Rows {
			for column := range t.Rows[row].Cells {
				if t.Name == table {
					do(t, t.OfCell(row, column))
				}
			}
		}
	}
}
