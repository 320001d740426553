// Package performance is the suite of the speed of programs inside containers: programs of the workload image, and the
// loads of the probe. The Source of a benchmark names the measurement that it repeats.
package performance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return slices.Concat(
		cpu(), []bench.Benchmark{stream()}, memory(), disk(), network(),
		[]bench.Benchmark{unixbench(), latency()}, database(),
	)
}

func higher(name string, unit result.Unit, help string) result.Metric {
	return result.Metric{Name: name, Unit: unit, Better: result.Higher, Help: help}
}

func seconds(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
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

// ofProbe completes a benchmark that runs one load of the probe in a container, and records its values.
func ofProbe(b bench.Benchmark, argv func(t bench.Trial) []string) bench.Benchmark {
	b.Run = func(ctx context.Context, t bench.Trial) error { return measureProbe(ctx, t, argv(t), b.Metrics) }
	return b
}

// runProbe runs one of the probe's loads in a container.
func runProbe(ctx context.Context, t bench.Trial, argv []string, options ...func(*engine.Spec)) (workload.Output, error) {
	spec := t.Spec(argv...)
	for _, option := range options {
		option(&spec)
	}
	return bench.Run(ctx, t, bench.InContainer, spec, workload.Parse)
}

// measureProbe runs one of the probe's loads in a container, and records the benchmark's metrics.
func measureProbe(ctx context.Context, t bench.Trial, argv []string, metrics []result.Metric, options ...func(*engine.Spec)) error {
	out, err := runProbe(ctx, t, argv, options...)
	if err != nil {
		return err
	}
	for _, m := range metrics {
		value, ok := out.Metrics[m.Name]
		if !ok || string(value.Unit) != string(m.Unit) {
			return fmt.Errorf("the program's output has no %s in %s", m.Name, m.Unit)
		}
		if value.Value == 0 {
			return fmt.Errorf("the program's output has 0 for %s: it completed no operation in its time", m.Name)
		}
		t.Record(m.Name, value.Value)
	}
	return nil
}

func unixbench() bench.Benchmark {
	metrics := []result.Metric{
		higher("LoopsPerSecond", result.PerSecond, "loops of close(dup(fd)) of a pipe, getpid, getuid and umask per second, over all copies"),
		higher("Index", result.Score, "UnixBench's index of LoopsPerSecond: 15000 loops per second are index 10"),
	}
	metrics[1].DerivedFrom = metrics[0].Name
	return ofProbe(bench.Benchmark{
		Name:    "performance.syscall.unixbench",
		Summary: "the system call mix of UnixBench, by the probe",
		Source:  "nishimura section 4; wang figure 15; byte-unixbench syscall (mix)",
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "copies", Help: "copies at once; UnixBench takes 1 and one for each CPU, wang 1 and 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
			duration(300*time.Millisecond, 10*time.Second, "run time of the loops"),
		},
	}, func(t bench.Trial) []string { return workload.Syscall(t.Int("copies"), t.Duration("duration")) })
}

func stream() bench.Benchmark {
	return ofProbe(bench.Benchmark{
		Name:    "performance.memory.stream",
		Summary: "memory bandwidth as STREAM measures it, best of the repetitions",
		Source:  "wang figure 8 (RAMspeed); McCalpin, STREAM",
		Metrics: []result.Metric{
			higher("Copy", result.BytesPerSecond, "c = a, 16 bytes an element"),
			higher("Scale", result.BytesPerSecond, "b = x·c, 16 bytes an element"),
			higher("Add", result.BytesPerSecond, "c = a + b, 24 bytes an element"),
			higher("Triad", result.BytesPerSecond, "a = b + x·c, 24 bytes an element"),
		},
		Params: []bench.Param{
			{Name: "mib", Help: "size of each of the three arrays in MiB; should be 4 times the last cache", Quick: "32", Paper: "128", Check: bench.IntRange(1, 65536)},
			duration(200*time.Millisecond, 5*time.Second, "run time of the repeated kernels"),
		},
	}, func(t bench.Trial) []string { return workload.Stream(t.Int("mib"), t.Duration("duration")) })
}
