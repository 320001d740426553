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

// Lose makes the first trials of a run fail.
func Lose(r *result.Run, n int) {
	for i := range n {
		r.Trials[i].Status, r.Trials[i].Samples, r.Trials[i].Reason = result.Timeout, nil, "the call exceeded its limit"
	}
}
