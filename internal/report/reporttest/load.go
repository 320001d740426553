package reporttest

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// LoadBenchmark is the benchmark of UnderLoad.
const LoadBenchmark = "scalability.runtime.50"

// Targets of UnderLoad.
const (
	// KneeTarget slows down beyond 35 running containers.
	KneeTarget = runsc
	// LineTarget grows evenly.
	LineTarget = crun
)

// UnderLoad is a run of one benchmark whose series have trends: on native none, on crun a line, and on runsc a knee.
func UnderLoad() result.Run {
	const n = 50
	s := newSampler("01K9Z0TOUCHSTONE0LOAD00000", "load", "sample.json")
	index := slices.IndexFunc(s.run.Bench, func(b result.Benchmark) bool { return b.Name == "scalability.runtime.5" })
	s.run.Bench = s.run.Bench[index : index+1]
	b := &s.run.Bench[0]
	b.Name, b.Place = LoadBenchmark, "number of running containers, this one included"
	b.Metrics = []result.Metric{{
		Name: "StartLatency", Unit: result.Seconds, Better: result.Lower, Series: true, Trend: "running container", Help: "create and start of a container",
	}}
	for block := -1; block < blocks; block++ {
		for _, target := range s.order() {
			t := s.trial(LoadBenchmark, "mode=sequential", target, block)
			for i := range n {
				running := float64(i + 1)
				start := map[string]float64{native: 0.9, runc: 24, crun: 8 + 0.05*running, runsc: 100 + 0.1*running + 4*max(0, running-35)}[target]
				record(t, "StartLatency", s.noisy(start/1e3, 0.03))
			}
		}
	}
	describe(&s.run)
	return s.run
}
