package decision

import (
	"math/rand/v2"
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
	var m Measured
	for _, block := range []int{0, 2, 1, 3, 7, 5} {
		m.Add(trialOf(block, 10-float64(block), 100, 0), valueMetrics)
	}
	failed := trialOf(4, 1)
	failed.Status = result.Failed
	m.Add(failed, valueMetrics)
	if len(m.series) != 1 {
		t.Fatalf("%d series, want one: costs of components are left out", len(m.series))
	}
	for _, tt := range []struct {
		blocks int
		want   []float64
	}{{0, nil}, {2, []float64{10, 9}}, {3, []float64{10, 9, 8}}, {6, []float64{10, 9, 8, 7, 5}}, {8, []float64{10, 9, 8, 7, 5, 3}}} {
		if got := m.series[0].first(tt.blocks); !slices.Equal(got, tt.want) {
			t.Errorf("the values of the first %d blocks are %v, want %v", tt.blocks, got, tt.want)
		}
	}
}

// A check that finds an imprecise series reads no other one.
//
// Invariant constant-work.
func TestCheckBeginsWithTheImpreciseSeries(t *testing.T) {
	rule := stats.StopRule{Min: 6, Max: 1000, Precision: 0.02}
	metrics := []result.Metric{{Name: "Steady"}, {Name: "Wide"}}
	var m Measured
	add := func(start, end int) {
		for block := start; block < end; block++ {
			m.Add(&result.Trial{Status: result.OK, Block: block, Samples: []result.Sample{{Metric: "Steady", Value: 1}, {Metric: "Wide", Value: float64(block)}}}, metrics)
		}
	}
	add(0, 6)
	if m.Enough(rule, 6) {
		t.Fatal("enough blocks although a series is wide")
	}
	add(6, 11)
	if m.Enough(rule, 11) || len(m.series[0].read) != 6 || len(m.series[1].read) != 11 {
		t.Errorf("the second check has read %d steady and %d wide values, want 6 and 11", len(m.series[0].read), len(m.series[1].read))
	}
	if m.Enough(rule, 6) || m.Enough(rule, 11) {
		t.Error("a repeated check has another result")
	}
}

// Independent values are precise after many blocks. In an order unlike the blocks they would look dependent, and the interval of the
// median would be several times as wide.
func TestPrecisionOfManyBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m Measured
	const blocks = 60
	for block := range blocks {
		m.Add(trialOf(block, 100+5*random.NormFloat64()), valueMetrics)
	}
	if !m.Enough(stats.StopRule{Min: 10, Max: 1000, Precision: 0.03}, blocks) {
		t.Error("60 blocks with a variation of 5 % do not give a median within 3 %")
	}
}

func TestValueOfATrial(t *testing.T) {
	values := []float64{3, 1, 2}
	if got := valueOf(result.Metric{}, values); got != 2 {
		t.Errorf("the value is %v, want the median", got)
	}
	if got := valueOf(result.Metric{Growth: true}, append(values, 9)); got != 9 {
		t.Errorf("the value of an amount that grows is %v, want the last one", got)
	}
}
