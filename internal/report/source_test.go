package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A source compares a benchmark with any baseline as the analysis of the run with this baseline does. The analysis alone judges the whole run together.
func TestSourceAgreesWithTheAnalysis(t *testing.T) {
	run := reporttest.Sample()
	source := analysis.NewSource(&run, analysis.Options{})
	count := 0
	for _, baseline := range []string{"", "native", "oci/crun", "oci/runsc", "no/target"} {
		based := run
		based.Baseline = baseline
		for _, want := range analysis.New([]result.Run{based}, analysis.Options{}).Benchmarks() {
			got, reason := source.Compare(want.Key, baseline, nil)
			if got == nil || got.Baseline != want.Baseline || got.Note != want.Note || len(got.Metrics) != len(want.Metrics) {
				t.Fatalf("%s against %q: %+v, %q", want.Title(), baseline, got, reason)
			}
			for i := range want.Metrics {
				for _, row := range want.Metrics[i].Rows {
					count++
					options := cmp.Options{cmpopts.EquateNaNs(), cmpopts.IgnoreFields(stats.Comparison{}, "Everywhere", "Look")}
					if diff := cmp.Diff(row.Cells[0].Comparison, got.Comparison(want.Metrics[i].Name, row.Target), options); diff != "" {
						t.Errorf("%s, %s on %s against %q (-analysis +source):\n%s", want.Title(), want.Metrics[i].Name, row.Target, baseline, diff)
					}
				}
			}
		}
	}
	if count == 0 {
		t.Error("nothing was compared")
	}
	if got, reason := source.Compare(analysis.Key{Name: "no.such.benchmark"}, "native", nil); got != nil || reason != "not in this run" {
		t.Errorf("a benchmark that the run lacks: %+v, %q", got, reason)
	}
}
