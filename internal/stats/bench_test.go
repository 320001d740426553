package stats

import (
	"fmt"
	"testing"
)

// A report of 300 cells has a second for all its summaries and comparisons.

func BenchmarkSummarize(b *testing.B) {
	for _, n := range []int{10, 50, 10_000} {
		series := normal.series(random(1), n, 1)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				Summarize(series, 1)
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{10, 50, 100, 10_000} {
		targets := run(random(1), normal, bimodal, n, 1, 1.1)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				Compare(targets[0], targets[1], Lower, 1)
			}
		})
	}
}

func BenchmarkCompareUnpaired(b *testing.B) {
	for _, n := range []int{10, 50, 10_000} {
		r := random(1)
		baseline, candidate := normal.series(r, n, 1), normal.series(r, n, 1.1)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				CompareUnpaired(baseline, candidate, Lower)
			}
		})
	}
}

// A selfcheck has fifteen smallest delays.
func BenchmarkSmallestDelay(b *testing.B) {
	baseline, twin := equalRuns(random(1), twoModes, 5, 60, 0)
	for _, n := range []int{16, 200, 2000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				SmallestDelay(baseline, twin, 0.01, n, 1)
			}
		})
	}
}
