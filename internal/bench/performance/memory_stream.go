package performance

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func stream() bench.Benchmark {
	return ofLoad(bench.Benchmark{
		Name:    "performance.memory.stream",
		Summary: "memory bandwidth as STREAM measures it, best of the repetitions",
		Source:  "wang figure 8 (RAMspeed/SMP, several processes); McCalpin, STREAM",
		Metrics: []result.Metric{
			bench.Scored(result.DimensionMemorySpeed, bench.Higher("Copy", result.BytesPerSecond, "c = a, 16 bytes an element")),
			bench.Scored(result.DimensionMemorySpeed, bench.Higher("Scale", result.BytesPerSecond, "b = x·c, 16 bytes an element")),
			bench.Scored(result.DimensionMemorySpeed, bench.Higher("Add", result.BytesPerSecond, "c = a + b, 24 bytes an element")),
			bench.Headed(result.ColumnMemorySpeed, bench.Scored(result.DimensionMemorySpeed, bench.Higher("Triad", result.BytesPerSecond, "a = b + x·c, 24 bytes an element"))),
		},
		Params: []bench.Param{
			{Name: "mib", Help: "size of each of the three arrays in MiB; should be 4 times the last cache", Quick: "32", Paper: "128", Check: bench.IntRange(1, 65536)},
			{Name: "copies", Help: "processes at once, each with arrays of its own; the rates count all of them", Quick: "1", Paper: "4", Check: bench.IntRange(1, 256)},
			duration(200*time.Millisecond, 5*time.Second, "run time of the repeated kernels"),
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return 3 * int64(p.Int("copies")) * int64(p.Int("mib")) << 20 }),
	}, func(t bench.Trial) workload.Program {
		return probe.StreamCopies(t.Int("copies"), t.Int("mib"), t.Duration("duration"))
	})
}
