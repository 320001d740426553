package performance

import "github.com/touchstone-bench/touchstone/internal/bench"

// database lists the benchmarks of databases.
func database() []bench.Benchmark { return nil }
