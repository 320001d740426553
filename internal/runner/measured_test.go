package runner

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func trialOf(block int, values ...float64) *result.Trial {
	t := &result.Trial{Cell: result.Cell{Target: "fake/a"}, Block: block, Status: result.OK}
	for _, v := range values {
		t.Samples = append(t.Samples, result.Sample{Metric: "Value", Value: v}, result.Sample{Metric: "Shim", Value: v})
	}
	return t
}

var valueMetrics = []result.Metric{{Name: "Value"}, {Name: "Shim", Component: "shim"}}

// A resumed run has all trials of its first part before its first check.
func TestSeriesOfFirstBlocks(t *testing.T) {
	var m measured
	for _, block := range []int{0, 2, 1, 3, 7, 5} {
		m.add(trialOf(block, 10-float64(block), 100, 0), valueMetrics)
	}
	failed := trialOf(4, 1)
	failed.Status = result.Failed
	m.add(failed, valueMetrics)
	if len(m.series) != 1 {
		t.Fatalf("%d series, want one: costs of components are left out", len(m.series))
	}
	for _, tt := range []struct {
		blocks int
		want   []float64
	}{{0, nil}, {2, []float64{9, 10}}, {3, []float64{8, 9, 10}}, {6, []float64{5, 7, 8, 9, 10}}, {8, []float64{3, 5, 7, 8, 9, 10}}} {
		if got := m.series[0].first(tt.blocks); !slices.Equal(got, tt.want) {
			t.Errorf("the values of the first %d blocks are %v, want %v", tt.blocks, got, tt.want)
		}
	}
}

// A check that finds an imprecise series reads no other one.
func TestCheckBeginsWithTheImpreciseSeries(t *testing.T) {
	rule := stats.StopRule{Min: 6, Max: 1000, Precision: 0.02}
	metrics := []result.Metric{{Name: "Steady"}, {Name: "Wide"}}
	var m measured
	add := func(from, to int) {
		for block := from; block < to; block++ {
			m.add(&result.Trial{Status: result.OK, Block: block, Samples: []result.Sample{{Metric: "Steady", Value: 1}, {Metric: "Wide", Value: float64(block)}}}, metrics)
		}
	}
	add(0, 6)
	if m.enough(rule, 6) {
		t.Fatal("enough blocks although a series is wide")
	}
	add(6, 11)
	if m.enough(rule, 11) || len(m.series[0].sorted) != 6 || len(m.series[1].sorted) != 11 {
		t.Errorf("the second check has read %d steady and %d wide values, want 6 and 11", len(m.series[0].sorted), len(m.series[1].sorted))
	}
	if m.enough(rule, 6) || m.enough(rule, 11) {
		t.Error("a repeated check has another result")
	}
}
