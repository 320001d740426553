// Package performance is the suite of how fast programs run inside: those of the workload image and the probe's
// own loads, in containers of each target. A benchmark says in its Source whose measurement it repeats.
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

// duration is the parameter for how long a load runs.
func duration(quick, paper time.Duration, help string) bench.Param {
	return bench.Param{
		Name: "duration", Help: help, Quick: quick.String(), Paper: paper.String(),
		Check: func(v string) error {
			if d, err := time.ParseDuration(v); err != nil || d < 10*time.Millisecond || d > time.Hour {
				return fmt.Errorf("must be a time from 10ms to 1h, such as %v", quick)
			}
			return nil
		},
	}
}

// settings reads parameters that are whole numbers, and the one for how long a load runs.
func settings(t bench.Trial, numbers map[string]*int) (time.Duration, error) {
	if err := bench.Numbers(t, numbers); err != nil {
		return 0, err
	}
	return time.ParseDuration(t.Param("duration"))
}

// measure runs one of the probe's loads to its end and reads its output.
func measure(ctx context.Context, t bench.Trial, spec engine.Spec) (workload.Output, error) {
	text, err := bench.Program(ctx, t, spec)
	if err != nil {
		return workload.Output{}, err
	}
	out, err := workload.Parse(text)
	if err != nil {
		return workload.Output{}, fmt.Errorf("read the output of %q: %w", spec.Process.Args, err)
	}
	return out, nil
}

// measureProgram runs a program of the benchmark's image and records the benchmark's metrics, and how many threads
// it ran if it says so.
func measureProgram(ctx context.Context, t bench.Trial, p workload.Program, metrics []result.Metric) error {
	values, err := bench.Measure(ctx, t, bench.SpecOf(t, p), p)
	if err != nil {
		return err
	}
	if n, says := values["Threads"]; says {
		t.Condition("threads", strconv.Itoa(int(n)))
	}
	return bench.RecordAll(t, values, metrics)
}

// record records the benchmark's metrics, each of which the output must have.
func record(t bench.Trial, out workload.Output, metrics []result.Metric) error {
	for _, m := range metrics {
		value, ok := out.Metrics[m.Name]
		if !ok || string(value.Unit) != string(m.Unit) {
			return fmt.Errorf("the program's output has no %s in %s", m.Name, m.Unit)
		}
		if value.Value == 0 {
			return fmt.Errorf("the program's output has 0 for %s: it got nothing done in its time", m.Name)
		}
		t.Record(m.Name, value.Value)
	}
	return nil
}

func unixbench() bench.Benchmark {
	metrics := []result.Metric{
		higher("LoopsPerSecond", result.PerSecond, "loops of close(dup(fd)) of a pipe, getpid, getuid and umask a second, over all copies"),
		higher("Index", result.Score, "UnixBench's index of the same: 15000 loops per second are index 10"),
	}
	metrics[1].DerivedFrom = metrics[0].Name
	return bench.Benchmark{
		Name:    "performance.syscall.unixbench",
		Summary: "the system call mix of UnixBench, by the probe",
		Source:  "nishimura section 4; wang figure 15; byte-unixbench syscall (mix)",
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "copies", Help: "copies at once; UnixBench takes 1 and one for each CPU, wang 1 and 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
			duration(300*time.Millisecond, 10*time.Second, "how long the loops run"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var copies int
			d, err := settings(t, map[string]*int{"copies": &copies})
			if err != nil {
				return err
			}
			out, err := measure(ctx, t, t.Spec(workload.Syscall(copies, d)...))
			if err != nil {
				return err
			}
			return record(t, out, metrics)
		},
	}
}

func stream() bench.Benchmark {
	metrics := []result.Metric{
		higher("Copy", result.BytesPerSecond, "c = a, 16 bytes an element"),
		higher("Scale", result.BytesPerSecond, "b = x·c, 16 bytes an element"),
		higher("Add", result.BytesPerSecond, "c = a + b, 24 bytes an element"),
		higher("Triad", result.BytesPerSecond, "a = b + x·c, 24 bytes an element"),
	}
	return bench.Benchmark{
		Name:    "performance.memory.stream",
		Summary: "memory bandwidth as STREAM measures it, best of the repetitions",
		Source:  "wang figure 8 (RAMspeed); McCalpin, STREAM",
		Metrics: metrics,
		Params: []bench.Param{
			{Name: "mib", Help: "size of each of the three arrays in MiB; should be 4 times the last cache", Quick: "32", Paper: "128", Check: bench.IntRange(1, 65536)},
			duration(200*time.Millisecond, 5*time.Second, "how long the kernels repeat"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var mib int
			d, err := settings(t, map[string]*int{"mib": &mib})
			if err != nil {
				return err
			}
			out, err := measure(ctx, t, t.Spec(workload.Stream(mib, d)...))
			if err != nil {
				return err
			}
			return record(t, out, metrics)
		},
	}
}
