package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A resumed run has only the metrics of its start.
func TestMetricsOfAnEarlierVersion(t *testing.T) {
	m := metrics{bench: []result.Benchmark{{Name: "a.b.c", Metrics: []result.Metric{{Name: "Old"}}}}}
	trial := result.Trial{
		Cell:          result.Cell{Benchmark: "a.b.c"},
		Samples:       []result.Sample{{Metric: "New", Value: 1}, {Metric: "Old", Value: 2}, {Metric: "New", Value: 3}},
		Distributions: []result.Distribution{{Metric: "New"}},
	}
	for range 2 {
		got := m.known(trial)
		if diff := cmp.Diff([]result.Sample{{Metric: "Old", Value: 2}}, got.Samples); diff != "" || len(got.Distributions) > 0 {
			t.Errorf("samples (-want +got):\n%s; distributions %v", diff, got.Distributions)
		}
	}
	want := []string{"New of a.b.c was not recorded: the version of Touchstone that started the run had no such metric"}
	expect.Equal(t, "caveats", want, m.dropped)
	if len(trial.Samples) != 3 || len(trial.Distributions) != 1 {
		t.Error("the trial itself has changed")
	}
	second := result.Trial{Cell: result.Cell{Benchmark: "x.y.z"}, Samples: []result.Sample{{Metric: "New"}}}
	expect.Equal(t, "a trial of an unknown benchmark", second, m.known(second), cmpopts.EquateEmpty())
}
