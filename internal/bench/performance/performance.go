// Package performance is the suite of the speed of programs inside containers: programs of the workload image, and the
// loads of the probe. The Source of a benchmark names the measurement that it repeats.
package performance

import (
	"context"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{
		cpuTime(), sevenZip(), zstd(), dav1d(), linpack(), stream(), memoryTotal(), memoryMinAvgLatency(), memoryMaxLatency(),
		diskRead(), diskWrite(), diskThroughput(), diskMount(), diskSQLite(), diskBlog(), bandwidth(), netperf(), web(),
		unixbench(), latency(), redis(), energyCPU(),
	}
}

// duration is the parameter for the run time of a load.
func duration(quick, paper time.Duration, help string) bench.Param {
	return bench.Param{
		Name: "duration", Help: help, Quick: quick.String(), Paper: paper.String(),
		Check: bench.TimeRange(10*time.Millisecond, time.Hour),
	}
}

// ofProgram completes a benchmark that runs one program of the workload image in a container, and records its values.
func ofProgram(b bench.Benchmark, program func(t bench.Trial) workload.Program) bench.Benchmark {
	b.Image = bench.WorkloadImage
	return ofLoad(b, program)
}

// ofLoad is ofProgram for a load of the probe.
func ofLoad(b bench.Benchmark, program func(t bench.Trial) workload.Program) bench.Benchmark {
	b.Run = func(ctx context.Context, t bench.Trial) error {
		values, err := bench.Measure(ctx, t, bench.InContainer, program(t))
		if err != nil {
			return err
		}
		if n, ok := values["Threads"]; ok {
			t.Condition("threads", strconv.Itoa(int(n)))
		}
		return bench.RecordAll(t, values, b.Metrics)
	}
	return b
}
