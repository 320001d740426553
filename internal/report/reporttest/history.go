package reporttest

import (
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Day is a run of a history, after a number of days, with three trials of one target. Its metric Create has a value, and its metric Rate the negative one.
func Day(n int, value float64) result.Run {
	r := result.Run{
		ID: fmt.Sprint("run", n), Started: time.Date(2026, 11, 20+n, 10, 0, 0, 0, time.UTC), State: result.Complete,
		Host:    result.Host{Hostname: "bench1", Kernel: "6.1.0", Arch: "amd64", CPU: "Example CPU", CPUs: 2, Memory: 8 << 30},
		Targets: []result.Target{{Name: "oci/runc", Version: "1.1.12"}},
		Bench: []result.Benchmark{{Name: "a.b.c", Metrics: []result.Metric{
			{Name: "Create", Unit: result.Seconds, Better: result.Lower}, {Name: "Rate", Unit: result.PerSecond, Better: result.Higher},
		}}},
	}
	for i := range 3 {
		r.Trials = append(r.Trials, result.Trial{
			Seq: i + 1, Cell: result.Cell{Benchmark: "a.b.c", Target: "oci/runc"}, Block: i, Status: result.OK,
			Samples: []result.Sample{{Metric: "Create", Value: value}, {Metric: "Rate", Value: -value}},
		})
	}
	return r
}

// Days are 5 runs of 20 ms and 5 of 22 ms, changed by a function that may be nil.
func Days(change func(n int, r *result.Run)) []result.Run {
	var runs []result.Run
	for n := range 10 {
		level := 0.020
		if n >= 5 {
			level = 0.022
		}
		r := Day(n, level*(1+0.001*float64(n%3)))
		if change != nil {
			change(n, &r)
		}
		runs = append(runs, r)
	}
	return runs
}

// TwoTargets are Days with ten trials each, and a second target that does not change. The trials vary by some per cent.
func TwoTargets() []result.Run {
	return Days(func(_ int, r *result.Run) {
		value := r.Trials[0].Samples[0].Value
		r.Targets = append(r.Targets, result.Target{Name: "oci/crun", Version: "1.8"})
		r.Trials = nil
		for block := range 10 {
			for i, target := range []string{"oci/runc", "oci/crun"} {
				create := []float64{value, 0.010}[i] * (1 + 0.005*float64(block*(3+i)%7))
				r.Trials = append(r.Trials, result.Trial{
					Seq: len(r.Trials) + 1, Cell: result.Cell{Benchmark: "a.b.c", Target: target}, Block: block, Status: result.OK,
					Samples: []result.Sample{{Metric: "Create", Value: create}, {Metric: "Rate", Value: 1 / create}},
				})
			}
		}
	})
}

// Lose makes the first trials of a run fail.
func Lose(r *result.Run, n int) {
	for i := range n {
		r.Trials[i].Status, r.Trials[i].Samples, r.Trials[i].Reason = result.Timeout, nil, "the call exceeded its limit"
	}
}
