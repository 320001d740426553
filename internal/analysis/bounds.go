package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Breach is a median beyond the bound of its metric: a limit that does not hold, on any baseline.
type Breach struct {
	Key
	Target string
	Metric result.Metric
	Median float64
	// Trials is the number of values behind the median.
	Trials int
	// Doubt is the reason why the breach may be chance. It is empty if the whole interval of the median is beyond the bound.
	Doubt string
}

// breaches lists the breaches of a benchmark in one run.
func (b *Benchmark) breaches(run int) []Breach {
	var breaches []Breach
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for _, row := range m.Rows {
			if c := &row.Cells[run]; m.Breached(c) {
				breaches = append(breaches, Breach{b.Key, row.Target, m.Metric, c.Summary.Median, c.Summary.N, doubt(m.Bound, c.Summary)})
			}
		}
	}
	return breaches
}

// doubt is the reason why a median beyond a bound may be chance.
func doubt(bound result.Bound, s *stats.Summary) string {
	switch {
	case s.CI == nil:
		return "too few trials for an interval: repeat it"
	case s.CI.Lo <= bound.Most:
		return "its interval includes the bound: repeat it on a quiet host"
	}
	return ""
}
