package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// comparisons are the comparisons of a run that have a verdict, in the order of the benchmarks.
func (a *Analysis) comparisons(run int) []*stats.Comparison {
	var all []*stats.Comparison
	for _, b := range a.Benchmarks() {
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
func (a *Analysis) judgeTogether(run int) {
	all := a.comparisons(run)
	stats.JudgeTogether(all, stats.Alpha)
	of := &a.Runs[run]
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
