package performance

import "github.com/touchstone-bench/touchstone/internal/bench"

// memory lists the benchmarks of access to memory.
func memory() []bench.Benchmark { return nil }
