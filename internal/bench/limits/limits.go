// Package limits is the suite of whether limits hold, and what running under them costs.
package limits

import "github.com/touchstone-bench/touchstone/internal/bench"

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return nil }
