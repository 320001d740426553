package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func cpuTime() bench.Benchmark {
	rate := bench.Higher("EventsPerSecond", result.PerSecond, "sysbench's own rate of events, the metric of wang")
	rate.DerivedFrom = "TotalTime"
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.time",
		Summary: "counting primes with sysbench cpu, a fixed amount of work",
		Source:  "espe figure 3, table 1 (CPUTime); nishimura section 4.3, tables 3 and 4; wang figure 6 with four threads",
		Metrics: []result.Metric{
			bench.Headed(result.ColumnCPU, bench.Scored(result.DimensionCPU, bench.Seconds("TotalTime", "time until all events are done; each event counts the primes again"))), rate,
		},
		Params: []bench.Param{
			{Name: "prime", Help: "largest number in the search for primes", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
			{Name: "events", Help: "number of searches", Quick: "1000", Paper: "10000", Check: bench.IntRange(100, 100_000_000)},
			{Name: "threads", Help: "number of threads that share the work; wang takes 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
		},
	}, func(t bench.Trial) workload.Program {
		return programs.SysbenchCPU(t.Int("prime"), t.Int("events"), t.Int("threads"))
	})
}
