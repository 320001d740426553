package execution

import (
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// metrics are the metrics that a run describes. A resumed run keeps the description from its start, and a newer version of Touchstone
// may have further metrics, or others in their place. Their values are not recorded: a run has one meaning for each of its
// metrics.
type metrics struct {
	bench   []result.Benchmark
	dropped []string // caveats
}

// known returns the trial without the values of unknown metrics.
func (m *metrics) known(t result.Trial) result.Trial {
	i := slices.IndexFunc(m.bench, func(b result.Benchmark) bool { return b.Name == t.Benchmark })
	if i < 0 {
		return t // the store refuses it
	}
	isNew := func(metric string) bool {
		if slices.ContainsFunc(m.bench[i].Metrics, func(d result.Metric) bool { return d.Name == metric }) {
			return false
		}
		caveat := fmt.Sprintf("%s of %s was not recorded: the version of Touchstone that started the run had no such metric", metric, t.Benchmark)
		if !slices.Contains(m.dropped, caveat) {
			m.dropped = append(m.dropped, caveat)
		}
		return true
	}
	t.Samples = slices.DeleteFunc(slices.Clone(t.Samples), func(s result.Sample) bool { return isNew(s.Metric) })
	t.Distributions = slices.DeleteFunc(slices.Clone(t.Distributions), func(d result.Distribution) bool { return isNew(d.Metric) })
	return t
}
