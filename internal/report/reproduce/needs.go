package reproduce

import (
	"cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// Needs reports whether a table has values of a benchmark on a target, or needs it as the reference. An empty target stands for any.
func Needs(p paper.Paper, table string, key analysis.Key, target string) bool {
	isNeeded := false
	each(p, table, func(t *paper.Table, value paper.Of) {
		if value.Unmeasured != "" || value.Target == "" || key.Name != value.Benchmark || !fits(value.Params, key.Params) {
			return
		}
		isNeeded = isNeeded || target == "" || target == value.Target || target == referenceOf(t, value)
	})
	return isNeeded
}

// WhyNothing is the reason why nothing of a table can be measured.
func WhyNothing(p paper.Paper, table string) string {
	reason := ""
	each(p, table, func(_ *paper.Table, value paper.Of) { reason = cmp.Or(reason, value.Unmeasured) })
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
