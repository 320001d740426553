package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// memory lists the benchmarks of access to memory with sysbench. TouchStone has three benchmarks of one program, each with
// its own runs. With the same parameters they differ only in the values that they keep of its report.
func memory() []bench.Benchmark {
	return []bench.Benchmark{
		sysbenchMemory(
			"total", "writing memory with sysbench, a fixed amount of work", "espe figure 2a, table 1 (MemTime); nishimura section 4.4, tables 3 and 4",
			bench.Scored(result.DimensionMemorySpeed, bench.Seconds("TotalTime", "time until all blocks are written, with the cost of the first access to each page")),
		),
		sysbenchMemory(
			"minavglatency", "minimum and mean latency of writing single blocks of memory with sysbench", "espe figure 2b, table 1 (MemMinLatency, MemAvgLatency)",
			bench.Seconds("MinLatency", "time of the fastest block, from sysbench's histogram, with an error of up to 1 % and 0.5 µs"),
			bench.Seconds("AvgLatency", "mean time of a block"),
		),
		sysbenchMemory(
			"maxlatency", "maximum latency of writing single blocks of memory with sysbench", "espe figure 2c, table 1 (MemMaxLatency)",
			bench.Seconds("MaxLatency", "time of the slowest block, in steps of 10 µs; it reflects preemption of the program as much as memory"),
		),
	}
}

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
