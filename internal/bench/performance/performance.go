// Package performance is the suite of the speed of programs inside containers: programs of the workload image, and the
// loads of the probe. The Source of a benchmark names the measurement that it repeats.
package performance

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return slices.Concat(
		[]bench.Benchmark{cpuTime(), sevenZip(), zstd(), dav1d(), linpack(), stream()}, memory(),
		[]bench.Benchmark{
			diskRead(), diskWrite(), diskThroughput(), diskMount(), diskSQLite(), diskBlog(), bandwidth(), netperf(), web(),
			unixbench(), latency(), redis(),
		},
	)
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
		if n, known := values["Threads"]; known {
			t.Condition("threads", strconv.Itoa(int(n)))
		}
		return bench.RecordAll(t, values, b.Metrics)
	}
	return b
}

func unixbench() bench.Benchmark {
	metrics := []result.Metric{
		bench.Higher("LoopsPerSecond", result.PerSecond, "loops of close(dup(fd)) of a pipe, getpid, getuid and umask per second, over all copies"),
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
		},
	}, func(t bench.Trial) workload.Program { return workload.Syscall(t.Int("copies"), t.Duration("duration")) })
}

func stream() bench.Benchmark {
	return ofLoad(bench.Benchmark{
		Name:    "performance.memory.stream",
		Summary: "memory bandwidth as STREAM measures it, best of the repetitions",
		Source:  "wang figure 8 (RAMspeed); McCalpin, STREAM",
		Metrics: []result.Metric{
			bench.Higher("Copy", result.BytesPerSecond, "c = a, 16 bytes an element"),
			bench.Higher("Scale", result.BytesPerSecond, "b = x·c, 16 bytes an element"),
			bench.Higher("Add", result.BytesPerSecond, "c = a + b, 24 bytes an element"),
			bench.Higher("Triad", result.BytesPerSecond, "a = b + x·c, 24 bytes an element"),
		},
		Params: []bench.Param{
			{Name: "mib", Help: "size of each of the three arrays in MiB; should be 4 times the last cache", Quick: "32", Paper: "128", Check: bench.IntRange(1, 65536)},
			duration(200*time.Millisecond, 5*time.Second, "run time of the repeated kernels"),
		},
	}, func(t bench.Trial) workload.Program { return workload.Stream(t.Int("mib"), t.Duration("duration")) })
}

// latency has a metric for each system call: the median of its distribution. The whole distributions are kept beside the
// samples.
func latency() bench.Benchmark {
	var metrics []result.Metric
	for _, name := range workload.Calls() {
		metrics = append(metrics, bench.Seconds(name, "median time of one call, timed in batches"))
	}
	return bench.Benchmark{
		Name:    "performance.syscall.latency",
		Summary: "time of single system calls, with the distribution for each",
		Source:  "peers (lmbench, gVisor's benchmarks)",
		Metrics: metrics,
		Params:  []bench.Param{duration(500*time.Millisecond, 10*time.Second, "run time, all calls together")},
		Run: func(ctx context.Context, t bench.Trial) error {
			p := workload.Latency(t.Duration("duration"))
			values, text, err := bench.Run(ctx, t, bench.InContainer, bench.SpecOf(t, p), p)
			if err != nil {
				return err
			}
			out, err := workload.Parse(text)
			if err != nil {
				return err
			}
			for _, c := range out.Calls {
				d := result.Distribution{Metric: c.Name, Unit: result.Seconds, Batch: c.Batch}
				for _, bucket := range c.Histogram {
					d.Lows, d.Counts = append(d.Lows, float64(bucket[0])/1e9), append(d.Counts, bucket[1])
				}
				t.RecordDistribution(d)
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}
