package report_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// BenchmarkReport is a run of 20 targets, 40 benchmarks and 50 blocks, from the samples in memory to the report. Most of it are permutation tests.
func BenchmarkReport(b *testing.B) {
	run := reporttest.Large{Name: "20-targets", Targets: 20, Benchmarks: 40, Blocks: 50, Metrics: 1, Values: 1}.Run()
	for b.Loop() {
		report.New([]result.Run{run}, analysis.Options{})
	}
}
