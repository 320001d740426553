package stats

import (
	"fmt"
	"slices"
	"testing"
)

// A report of 300 cells has a second for all its summaries and comparisons, and a selfcheck has fifteen smallest delays.
func BenchmarkStatistics(b *testing.B) {
	for _, n := range []int{10, 50, 2000, 10_000} {
		r := random(1)
		baseline, candidate := normal.series(r, n, 1), normal.series(r, n, 1.1)
		targets := run(r, normal, bimodal, n, 1, 1.1)
		first, twin := equalRuns(r, twoModes, 5, 60, 0)
		for name, call := range map[string]func(){
			"summarize":        func() { Summarize(baseline) },
			"compare":          func() { Compare(targets[0], targets[1], Lower, 1) },
			"compare-unpaired": func() { CompareUnpaired(baseline, candidate, Lower) },
			"smallest-delay":   func() { SmallestDelay(first, twin, 0.01, n, 1) },
		} {
			b.Run(fmt.Sprint(name, "/n=", n), func(b *testing.B) {
				for b.Loop() {
					call()
				}
			})
		}
	}
}

// The history of a metric over 1,000 runs has three seconds.
func BenchmarkChangePoints(b *testing.B) {
	r := random(1)
	values := slices.Concat(normal.series(r, 500, 1), normal.series(r, 500, 1.1))
	for b.Loop() {
		ChangePoints(values, 1)
	}
}
