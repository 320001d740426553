package performance

import (
	"fmt"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// sysbenchMemory is a benchmark of access to memory with sysbench. TouchStone has three benchmarks of this program, each with its
// own runs. They differ in the amount of memory, whose quick and paper values are given in MiB, and in the values that they keep
// of the program's report.
func sysbenchMemory(facet, summary, source, quick, paper string, metrics ...result.Metric) bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.memory." + facet,
		Summary: summary,
		Source:  source,
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "mib", Help: "amount of memory that is written, in MiB", Quick: quick, Paper: paper, Check: bench.IntRange(64, 1<<24)},
			{
				Name: "kib", Help: "size of a block in KiB, a power of two; a block that fits into a CPU's caches measures the caches",
				Quick: "1024", Paper: "1024", Check: powerOfTwo(64, 64<<10),
			},
			{Name: "threads", Help: "number of threads that share the work", Quick: "1", Paper: "1", Check: bench.IntRange(1, 64)},
			{
				Name: "scope", Help: "global: all threads use one block; local: each thread has a block of its own",
				Quick: "global", Paper: "global", Check: bench.OneOf("global", "local"),
			},
			{Name: "operation", Help: "operation on a block: write or read", Quick: "write", Paper: "write", Check: bench.OneOf("write", "read")},
			{Name: "access", Help: "order of access within a block: seq or rnd", Quick: "seq", Paper: "seq", Check: bench.OneOf("seq", "rnd")},
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return memoryLoad(p).Bytes() }),
	}, func(t bench.Trial) workload.Program {
		return programs.SysbenchMemory(memoryLoad(t.Params))
	})
}

func memoryLoad(p bench.Params) programs.MemoryLoad {
	return programs.MemoryLoad{
		TotalMiB: p.Int("mib"), BlockKiB: p.Int("kib"), Threads: p.Int("threads"),
		Scope: p.Param("scope"), Operation: p.Param("operation"), Access: p.Param("access"),
	}
}

// powerOfTwo is a check that accepts the powers of two from lo to hi. sysbench has no blocks of other sizes.
func powerOfTwo(lo, hi int) func(string) error {
	checkRange := bench.IntRange(lo, hi)
	return func(v string) error {
		if n, err := strconv.Atoi(v); checkRange(v) != nil || err != nil || n&(n-1) != 0 {
			return fmt.Errorf("must be a power of two from %d to %d", lo, hi)
		}
		return nil
	}
}
