package report

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// comparisons are the comparisons of a run that have a verdict, in the order of the report.
func (r *Report) comparisons(run int) []*stats.Comparison {
	var all []*stats.Comparison
	for _, b := range r.Benchmarks() {
		for m := range b.Metrics {
			for n := range b.Metrics[m].Rows {
				if c := b.Metrics[m].Rows[n].Cells[run].Comparison; c != nil && c.Verdict != stats.Withheld && finite(c.P) {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// judgeTogether marks the differences of a run that are shown over all its comparisons, and counts the differences.
func (r *Report) judgeTogether(run int) {
	all := r.comparisons(run)
	stats.JudgeTogether(all, stats.Alpha)
	of := &r.Runs[run]
	of.Together = len(all)
	for _, c := range all {
		if c.Differs() {
			of.Differences++
			if c.Everywhere {
				of.Everywhere++
			}
		}
	}
}

// TiersNote counts the differences of a run by tier, with the number of false ones to expect. It is empty without a difference.
func (r *Run) TiersNote() string {
	if r.Differences == 0 {
		return ""
	}
	alone := fmt.Sprintf("in its metric alone: if no target differed, about %s of %s would show a difference by chance.",
		quantity.Significant(stats.Alpha*float64(r.Families), 2), quantity.Counted(r.Families, "metric"))
	together := quantity.Counted(r.Together, "comparison") + " of the run"
	switch r.Everywhere {
	case 0:
		return fmt.Sprintf("None of the differences holds over all %s, which needs at least %d blocks. Each holds %s", together, stats.BlocksNeeded(r.Together), alone)
	case r.Differences:
		return fmt.Sprintf("All differences hold over the %s together: the chance that one of them is false is at most %s.", together, quantity.Percent(stats.Alpha))
	}
	return fmt.Sprintf("%d of the differences hold over all %s: the chance that one of them is false is at most %s. Each of the other %d holds %s",
		r.Everywhere, together, quantity.Percent(stats.Alpha), r.Differences-r.Everywhere, alone)
}
