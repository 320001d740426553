package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// memory lists the benchmarks of access to memory with sysbench. TouchStone has three of one program, each with its own
// runs; with the same parameters they differ in what they keep of its report.
func memory() []bench.Benchmark {
	return []bench.Benchmark{
		sysbenchMemory(
			"total", "writing memory with sysbench, a fixed amount of work", "espe figure 2a, table 1 (MemTime); nishimura section 4.4, tables 3 and 4",
			total("TotalTime", "time until all blocks are written; with it what the first touch of each page costs"),
		),
		sysbenchMemory(
			"minavglatency", "latency of writing single blocks of memory with sysbench, the least and the mean", "espe figure 2b, table 1 (MemMinLatency, MemAvgLatency)",
			total("MinLatency", "time of the fastest block, from sysbench's histogram: up to 1 % and 0.5 µs off"),
			total("AvgLatency", "mean time of a block"),
		),
		sysbenchMemory(
			"maxlatency", "latency of writing single blocks of memory with sysbench, the most", "espe figure 2c, table 1 (MemMaxLatency)",
			total("MaxLatency", "time of the slowest block, in steps of 10 µs; it tells how often the program was kept from its CPU, as much as of memory"),
		),
	}
}

func sysbenchMemory(facet, summary, source string, metrics ...result.Metric) bench.Benchmark {
	return bench.Benchmark{
		Name:    "performance.memory." + facet,
		Summary: summary,
		Source:  source,
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "mib", Help: "how much is written, in MiB", Quick: "4096", Paper: "102400", Check: bench.IntRange(64, 1<<24)},
			{
				Name: "kib", Help: "size of a block in KiB; each thread has one, so that blocks up to the size of a CPU's caches measure these",
				Quick: "1024", Paper: "1024", Check: bench.IntRange(64, 64<<10),
			},
			{Name: "threads", Help: "how many threads share the work", Quick: "1", Paper: "1", Check: bench.IntRange(1, 64)},
			{Name: "operation", Help: "what is done with a block: write or read", Quick: "write", Paper: "write", Check: bench.OneOf("write", "read")},
			{Name: "access", Help: "the order within a block: seq or rnd", Quick: "seq", Paper: "seq", Check: bench.OneOf("seq", "rnd")},
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			load := workload.MemoryLoad{Operation: t.Param("operation"), Access: t.Param("access")}
			err := bench.Numbers(t, map[string]*int{"mib": &load.TotalMiB, "kib": &load.BlockKiB, "threads": &load.Threads})
			if err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.SysbenchMemory(load), metrics)
		},
	}
}
