package performance

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func unixbench() bench.Benchmark {
	metrics := []result.Metric{
		bench.Headed(result.ColumnSystemCalls, bench.Scored(result.DimensionSystemCalls, bench.Higher("LoopsPerSecond", result.PerSecond, "loops of close(dup(fd)), getpid, getuid and umask per second, over all copies"))),
		bench.Higher("Index", result.Score, "UnixBench's index of LoopsPerSecond: 15000 loops per second are index 10"),
	}
	metrics[1].DerivedFrom = metrics[0].Name
	return ofLoad(bench.Benchmark{
		Name:    "performance.syscall.unixbench",
		Summary: "the system call mix of UnixBench, by the probe",
		Source:  "nishimura section 4; wang figure 15; byte-unixbench syscall (mix)",
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "copies", Help: "copies at once; UnixBench takes 1 and one for each CPU, wang 1 and 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
			duration(300*time.Millisecond, 10*time.Second, "run time of the loops"),
			{
				Name: "fd", Quick: pipeEnd, Paper: standardInput, Check: bench.OneOf(pipeEnd, standardInput),
				Help: "the duplicated descriptor: a pipe of the program, the same on every target, or stdin, as in UnixBench",
			},
		},
	}, func(t bench.Trial) workload.Program {
		if t.Param("fd") == standardInput {
			return probe.SyscallStdin(t.Int("copies"), t.Duration("duration"))
		}
		return probe.Syscall(t.Int("copies"), t.Duration("duration"))
	})
}

// The values of the parameter fd.
const (
	pipeEnd       = "pipe"
	standardInput = "stdin"
)
