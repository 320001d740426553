package report

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Precise is the stop rule of a plan: it tells whether, of the trials of one benchmark, the
// interval of every metric on every target is within precision (0.02 is ± 2 %) of its
// median. Targets without a trial that is ok do not hold it up, nor do the costs of single
// components: those are often near nothing, and nothing is judged by them.
func Precise(trials []result.Trial, precision float64, seed uint64) bool {
	type series struct{ target, metric string }
	values := map[series][]float64{}
	for i := range trials {
		t := &trials[i]
		if t.Status != result.OK || t.Warmup {
			continue
		}
		seen := map[string]bool{}
		for _, s := range t.Samples {
			if seen[s.Metric] || isComponent(s.Metric) {
				continue
			}
			seen[s.Metric] = true
			key := series{t.Target, s.Metric}
			values[key] = append(values[key], median(t.Values(s.Metric)))
		}
	}
	for _, v := range values {
		if !stats.Precise(v, precision, seed) {
			return false
		}
	}
	return true
}
