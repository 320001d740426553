package analysis

import (
	"fmt"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// The values of all metrics come from one pass over the trials, without memory for each trial.
func TestPointsTakeNoMemoryPerTrial(t *testing.T) {
	const blocks = 500
	var metrics []result.Metric
	for i := range 10 {
		metrics = append(metrics, result.Metric{Name: fmt.Sprint("Value", i)})
	}
	var trials []*result.Trial
	for block := range blocks {
		trial := &result.Trial{Block: block}
		for _, m := range metrics {
			trial.Samples = append(trial.Samples, result.Sample{Metric: m.Name, Value: float64(block)})
		}
		trials = append(trials, trial)
	}
	var points map[string][]Point
	allocations := testing.AllocsPerRun(5, func() { points = pointsOf(trials, metrics) })
	for _, m := range metrics {
		if got := points[m.Name]; len(got) != blocks || cap(got) != blocks {
			t.Errorf("%s has %d points in a list for %d, want %d", m.Name, len(got), cap(got), blocks)
		}
	}
	if limit := 100.0; allocations > limit {
		t.Errorf("%d trials take %v allocations, want at most %v", blocks, allocations, limit)
	}
}

// A place has the values of the trials that reach it.
func TestCurveOfUnequalTrials(t *testing.T) {
	var trials []*result.Trial
	for _, values := range [][]float64{{1, 2, 3}, {5}, nil, {9, 4}} {
		trial := &result.Trial{}
		for _, v := range values {
			trial.Samples = append(trial.Samples, result.Sample{Metric: "Value", Value: v}, result.Sample{Metric: "other", Value: 7})
		}
		trials = append(trials, trial)
	}
	want := [][]float64{{1, 5, 9}, {2, 4}, {3}}
	got := curve(trials, "Value")
	if !slices.EqualFunc(got, want, func(p Place, values []float64) bool { return slices.Equal(p.Values, values) }) {
		t.Errorf("curve() = %v, want %v", got, want)
	}
	if got[0].Median != 5 || got[1].Median != 3 {
		t.Errorf("the medians are %v and %v, want 5 and 3", got[0].Median, got[1].Median)
	}
}
