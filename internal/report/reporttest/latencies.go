package reporttest

import (
	"math/rand/v2"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

// LatencyBenchmark is the benchmark of Latencies.
const LatencyBenchmark = "latency.exec"

// Targets of Latencies.
const (
	// BoundedTarget has an exponential tail.
	BoundedTarget = runc
	// DriftingTarget becomes slower from sample to sample.
	DriftingTarget = crun
	// ShortTarget has too few samples for a bound.
	ShortTarget = runsc
)

// Latencies is a run of one benchmark with the tails of many samples: 6 trials of 5000 on most targets.
func Latencies() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0TAIL00000", "latencies", "sample.json")
	s.run.Bench = []result.Benchmark{{
		Name: LatencyBenchmark, Summary: "many processes in a row in a running container", Source: "peers (cyclictest)",
		Metrics: []result.Metric{{Name: "Exec", Unit: result.Seconds, Better: result.Lower, Help: "from the call to the exit"}},
	}}
	random := rand.New(rand.NewPCG(9, 9))
	for block := range 6 {
		for _, target := range s.order() {
			t := s.trial(LatencyBenchmark, "samples=5000", target, block)
			n := 5000
			if target == ShortTarget {
				n = 300
			}
			values := make([]float64, n)
			for i := range values {
				values[i] = 0.01 + 0.001*random.ExpFloat64()
				if target == DriftingTarget {
					values[i] *= 1 + float64(block*n+i)/float64(6*n)
				}
			}
			record(t, "Exec", 0.0107)
			t.Distributions = []result.Distribution{withTail(values)}
		}
	}
	describe(&s.run)
	return s.run
}

// RarerRefused is the reason of PartlyBounded.
const RarerRefused = "the likelihood does not bound the value that is exceeded with probability 1e-06"

// PartlyBounded is the report of Latencies, but its worst cases have only the first of their bounds.
func PartlyBounded() report.Report {
	r := report.New([]result.Run{Latencies()}, analysis.Options{})
	for _, b := range r.Benchmarks() {
		for _, m := range b.Worsts() {
			for _, row := range m.Rows {
				if w := row.Cells[0].Worst; w != nil && len(w.Bounds) > 1 {
					w.Bounds = w.Bounds[:1]
					w.Rarer = &tail.Refusal{Test: tail.Heaviness, Reason: RarerRefused, Advice: "take more samples", Samples: 60_000}
				}
			}
		}
	}
	return r
}

// withTail is the distribution of values in one bucket, with the largest fifth as the tail.
func withTail(values []float64) result.Distribution {
	sorted := slices.Sorted(slices.Values(values))
	d := result.Distribution{Metric: "Exec", Unit: result.Seconds, Lows: []float64{0}, Counts: []uint64{uint64(len(values))}, Batch: 1, Tail: &result.Tail{}}
	for i, v := range values {
		if v >= sorted[len(sorted)*4/5] {
			d.Tail.At, d.Tail.Values = append(d.Tail.At, i), append(d.Tail.Values, v)
		}
	}
	return d
}
