// Package portability is the suite of the question whether an image runs on another machine than its own.
package portability

import "github.com/touchstone-bench/touchstone/internal/bench"

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return []bench.Benchmark{image()} }
