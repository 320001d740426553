package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// comparisons are the comparisons of a run that have a verdict, in the order of the benchmarks.
func (a *Analysis) comparisons(run int) []*stats.Comparison {
	var comparisons []*stats.Comparison
	for _, b := range a.Benchmarks() {
		for m := range b.Metrics {
			for n := range b.Metrics[m].Rows {
				if c := b.Metrics[m].Rows[n].Cells[run].Comparison; hasP(c) {
					comparisons = append(comparisons, c)
				}
			}
		}
	}
	return comparisons
}

// hasP reports whether a comparison has a p-value and a verdict.
func hasP(c *stats.Comparison) bool { return c != nil && c.Verdict != stats.Withheld && finite(c.P) }

// judgeTogether marks the differences of a run that are shown over all its comparisons, and counts the differences.
func (a *Analysis) judgeTogether(run int) {
	comparisons := a.comparisons(run)
	stats.JudgeTogether(comparisons, stats.Alpha)
	r := &a.Runs[run]
	r.Together = len(comparisons)
	for _, c := range comparisons {
		if c.Differs() {
			r.Differences++
			if c.Everywhere {
				r.Everywhere++
			}
		}
	}
}
