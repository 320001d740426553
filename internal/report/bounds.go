package report

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Breach is a median beyond the bound of its metric: something does not hold that the user relies on. It says so by
// itself, whatever the baseline does.
type Breach struct {
	Benchmark, Params, Target string
	Metric                    result.Metric
	Median                    float64
	// Trials is how many values the median is of.
	Trials int
	// Doubt says why it might be chance, empty if the whole interval of the median lies beyond the bound.
	Doubt string
}

// Title is the benchmark's name with its parameters.
func (b *Breach) Title() string { return title(b.Benchmark, b.Params) }

// String says it in one sentence: "limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is 980 %,
// and 110 % is the most that holds (median of 10 trials)."
func (b *Breach) String() string { return b.Title() + ": " + b.Short() + "." }

// Short is String without the benchmark.
func (b *Breach) Short() string {
	trials := fmt.Sprintf("median of %d trials", b.Trials)
	if b.Trials == 1 {
		trials = "one trial"
	}
	if b.Doubt != "" {
		trials += ", " + b.Doubt
	}
	return fmt.Sprintf("%s %s: %s is %s, and %s is the most that holds (%s)",
		b.Target, b.Metric.Bound.Broken, b.Metric.Name, Quantity(b.Median, b.Metric.Unit), Quantity(b.Metric.Bound.Most, b.Metric.Unit), trials)
}

// Breached tells whether the median lies beyond the bound of the cell's metric.
func (m *Metric) Breached(c *Cell) bool {
	return m.Bound.Broken != "" && c.Summary != nil && c.Summary.Median > m.Bound.Most
}

// breaches lists those of a benchmark.
func breaches(b *Benchmark) []Breach {
	var all []Breach
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for j := range m.Cells {
			if c := &m.Cells[j]; m.Breached(c) {
				all = append(all, Breach{b.Name, b.Params, c.Target, m.Metric, c.Summary.Median, c.Summary.N, doubt(m.Bound, c.Summary)})
			}
		}
	}
	return all
}

// doubt says why a median beyond a bound might be chance.
func doubt(bound result.Bound, s *stats.Summary) string {
	switch {
	case s.CI == nil:
		return "too few to be sure: repeat it"
	case s.CI.Lo <= bound.Most:
		return "whose interval reaches below that: repeat it on a quiet host"
	}
	return ""
}
