package runner

import (
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/latency"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// trialLatency implements bench.Latency.
type trialLatency struct{ *trial }

func (t trialLatency) Sample(metric string, d time.Duration) error {
	t.mustDeclare(metric)
	t.mu.Lock()
	defer t.mu.Unlock()
	index := slices.IndexFunc(t.latencies, func(l latencies) bool { return l.metric == metric })
	if index < 0 {
		index = len(t.latencies)
		t.latencies = append(t.latencies, latencies{metric, latency.New()})
	}
	return t.latencies[index].Record(d)
}

func (t trialLatency) Quantile(metric string, q float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.latencies {
		if l.metric == metric {
			return l.Quantile(q)
		}
	}
	return 0
}

func (t trialLatency) Forget(c engine.Container, output bench.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.containers = slices.DeleteFunc(t.containers, func(entry engine.Container) bool { return entry == c })
	t.watches = slices.DeleteFunc(t.watches, func(entry *meter.Watch) bool { return bench.Watch(entry) == output })
}

// latencies are the times of a metric.
type latencies struct {
	metric string
	*latency.Recorder
}

// reduced adds the distributions of the times to the trial's.
func (t *trial) reduced() {
	for _, l := range t.latencies {
		t.histograms = append(t.histograms, l.Distribution(l.metric))
	}
}
