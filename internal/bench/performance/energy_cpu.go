package performance

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func energyCPU() bench.Benchmark {
	return bench.Benchmark{
		Name:    "performance.energy.cpu",
		Summary: "the energy of counting primes with sysbench cpu, in a new container",
		Source:  "peers; the work of espe figure 3",
		Metrics: bench.EnergyMetrics("one event of sysbench, a search for primes"),
		Params: []bench.Param{
			{Name: "prime", Help: "largest number in the search for primes", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
			{Name: "events", Help: "number of searches", Quick: "2000", Paper: "10000", Check: bench.IntRange(100, 1_000_000)},
			{Name: "threads", Help: "number of threads that share the work", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
			bench.IdleParam(2*time.Second, 10*time.Second),
		},
		Image: bench.WorkloadImage,
		Needs: func(bench.Params) bench.Needs {
			return bench.Needs{Capabilities: []engine.Capability{engine.OnMachine}, Energy: true}
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			return bench.RecordEnergy(ctx, t, t.Duration("idle"), func(ctx context.Context) (int, error) {
				_, err := bench.Measure(ctx, t, bench.InContainer, programs.SysbenchCPU(t.Int("prime"), t.Int("events"), t.Int("threads")))
				return t.Int("events"), err
			})
		},
	}
}
