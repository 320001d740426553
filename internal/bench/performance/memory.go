package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// sysbenchMemory is a benchmark of access to memory with sysbench. TouchStone has three benchmarks of one program, each with
// its own runs. With the same parameters they differ only in the values that they keep of its report.
func sysbenchMemory(facet, summary, source string, metrics ...result.Metric) bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.memory." + facet,
		Summary: summary,
		Source:  source,
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "mib", Help: "amount of memory that is written, in MiB", Quick: "4096", Paper: "102400", Check: bench.IntRange(64, 1<<24)},
			{
				Name: "kib", Help: "size of a block in KiB; each thread has one, so that a block that fits into a CPU's caches measures the caches",
				Quick: "1024", Paper: "1024", Check: bench.IntRange(64, 64<<10),
			},
			{Name: "threads", Help: "number of threads that share the work", Quick: "1", Paper: "1", Check: bench.IntRange(1, 64)},
			{Name: "operation", Help: "operation on a block: write or read", Quick: "write", Paper: "write", Check: bench.OneOf("write", "read")},
			{Name: "access", Help: "order of access within a block: seq or rnd", Quick: "seq", Paper: "seq", Check: bench.OneOf("seq", "rnd")},
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return int64(p.Int("threads")) * int64(p.Int("kib")) << 10 }),
	}, func(t bench.Trial) workload.Program {
		return workload.SysbenchMemory(workload.MemoryLoad{
			TotalMiB: t.Int("mib"), BlockKiB: t.Int("kib"), Threads: t.Int("threads"),
			Operation: t.Param("operation"), Access: t.Param("access"),
		})
	})
}
