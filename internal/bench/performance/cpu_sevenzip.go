package performance

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func sevenZip() bench.Benchmark {
	var metrics []result.Metric
	for _, d := range []struct{ name, of string }{
		{"Compress", "compressing, the mean of the passes"}, {"Decompress", "decompressing, the mean of the passes"}, {"Total", "the mean of both"},
	} {
		metrics = append(metrics,
			bench.Scored(result.DimensionCPU, bench.Higher(d.name+"Rating", result.Score, "7-Zip's rating in MIPS of "+d.of)),
			bench.Higher(d.name+"Usage", result.Ratio, "CPU time over elapsed time of "+d.of+", as the program sees both; 100 % is one CPU"),
			bench.Higher(d.name+"PerUsage", result.Score, "7-Zip's R/U in MIPS of "+d.of+": the rating of one CPU; it compares only targets with the same usage"),
		)
	}
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.sevenzip",
		Summary: "compressing and decompressing in memory with 7-Zip's benchmark",
		Source:  "sateri sections 3.3.4 and 4.3, tables 4.7 and 4.8 (20 passes)",
		Metrics: metrics,
		Params: []bench.Param{
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees, as in the paper; a virtual machine has CPUs of its own"),
			{
				Name: "dictionary", Help: "size of the largest dictionary as a power of two; a pass goes from 18 to it, or from 22 if it is at least 22",
				Quick: "18", Paper: "25", Check: bench.IntRange(18, 30),
			},
			{Name: "passes", Help: "number of passes through the dictionaries, in one run of 7-Zip", Quick: "1", Paper: "20", Check: bench.IntRange(1, 1000)},
			{
				Name: "step", Help: "amount of work in a step, as its time on a slow CPU; usage is counted in ticks of 10ms, so that short steps make it coarse",
				Quick: "500ms", Paper: "4s", Check: bench.TimeRange(100*time.Millisecond, time.Hour),
			},
		},
		Needs: bench.InMemory(func(p bench.Params) int64 {
			// With the largest dictionary 7-Zip reports 13 times its size for each two threads ("RAM usage").
			pairs := (mostThreads(p) + 1) / 2
			return int64(pairs) * 13 << p.Int("dictionary")
		}),
	}, func(t bench.Trial) workload.Program {
		return programs.SevenZip{Threads: threads(t), Dictionary: t.Int("dictionary"), Passes: t.Int("passes"), Step: t.Duration("step")}.Program()
	})
}
