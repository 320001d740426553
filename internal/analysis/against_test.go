package analysis_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestAgainst: a run compared with another baseline has the numbers of an analysis of the run with this baseline, also if some benchmarks lack it.
func TestAgainst(t *testing.T) {
	for name, run := range map[string]result.Run{"sample": reporttest.Sample(), "stated": reporttest.Stated(), "small": reporttest.Small()} {
		a := analysis.New([]result.Run{run}, analysis.Options{})
		for _, target := range run.Targets {
			twin := run
			twin.Baseline = target.Name
			want := analysis.New([]result.Run{twin}, analysis.Options{})
			got := a.Against(0, target.Name)
			for i, b := range a.Benchmarks() {
				peer := want.Benchmarks()[i]
				if got.Baselines[b] != peer.Sections[0].Baseline {
					t.Errorf("%s: the baseline of %s is %q, want %q", name, b.Title(), got.Baselines[b], peer.Sections[0].Baseline)
				}
				for n := range b.Metrics {
					for r, c := range got.Cells[&b.Metrics[n]] {
						if diff := cmp.Diff(peer.Metrics[n].Rows[r].Cells[0].Comparison, c.Comparison, cmpopts.EquateNaNs(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
							t.Errorf("%s: %s of %s against %s differs (-want +got):\n%s", name, b.Metrics[n].Name, b.Title(), target.Name, diff)
						}
					}
				}
			}
		}
	}
}
