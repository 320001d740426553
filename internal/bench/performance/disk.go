package performance

import "github.com/touchstone-bench/touchstone/internal/bench"

// disk lists the benchmarks of access to files.
func disk() []bench.Benchmark { return nil }
