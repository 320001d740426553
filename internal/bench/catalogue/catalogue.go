// Package catalogue lists all benchmarks.
package catalogue

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/density"
	"github.com/touchstone-bench/touchstone/internal/bench/footprint"
	"github.com/touchstone-bench/touchstone/internal/bench/isolation"
	"github.com/touchstone-bench/touchstone/internal/bench/latency"
	"github.com/touchstone-bench/touchstone/internal/bench/limits"
	"github.com/touchstone-bench/touchstone/internal/bench/operations"
	"github.com/touchstone-bench/touchstone/internal/bench/performance"
	"github.com/touchstone-bench/touchstone/internal/bench/pods"
	"github.com/touchstone-bench/touchstone/internal/bench/portability"
	"github.com/touchstone-bench/touchstone/internal/bench/scalability"
	"github.com/touchstone-bench/touchstone/internal/bench/surface"
)

// Catalogue resolves the names of benchmarks in plans.
type Catalogue struct{}

// All lists the benchmarks in display order. Of benchmarks with a number in their names it lists only the numbers of the
// paper.
func (Catalogue) All() []bench.Benchmark {
	return slices.Concat(
		operations.Benchmarks(), scalability.Benchmarks(), performance.Benchmarks(), limits.Benchmarks(),
		density.Benchmarks(), isolation.Benchmarks(), footprint.Benchmarks(), portability.Benchmarks(),
		latency.Benchmarks(), surface.Benchmarks(), pods.Benchmarks(),
	)
}

// Lookup finds a benchmark by its full name, with any number.
func (c Catalogue) Lookup(name string) (bench.Benchmark, bool) {
	for _, b := range c.All() {
		if b.Name == name {
			return b, true
		}
	}
	return scalability.Lookup(name)
}
