// Package limits is the suite of resource limits: whether they hold, and the cost of running under them. An accepted limit
// proves little: TouchStone's authors found a runtime that ignored it, by the time that a program took. Therefore these
// benchmarks measure the real use of a resource, as the host counts it, and record it as a metric with a bound.
package limits

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return []bench.Benchmark{cpuTime(), cpuScaling(), memoryOOM()} }

// bounded is a metric that exceeds limit only if a limit does not hold.
func bounded(name string, limit float64, violation, help string) result.Metric {
	return result.Metric{
		Name: name, Unit: result.Ratio, Better: result.Lower, Help: help, Bound: result.Bound{Most: limit, Broken: violation},
	}
}

func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

// primes are the parameters of the load under a limit: the load of performance.cpu.time, with its own number of events.
func primes(quick, paper string) []bench.Param {
	return []bench.Param{
		{Name: "prime", Help: "largest number in the search for primes", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
		{Name: "events", Help: "number of searches", Quick: quick, Paper: paper, Check: bench.IntRange(100, 100_000_000)},
	}
}

// period is the period of CPU quotas in all engines; periods is the number of periods in a second.
const (
	period  = "100 ms"
	periods = 10
)

// percentOfCPU formats a CPU limit.
func percentOfCPU(cpus float64) string {
	return fmt.Sprintf("%.3g %% of a CPU, in each %s", 100*cpus, period)
}
