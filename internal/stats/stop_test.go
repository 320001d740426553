package stats

import (
	"math"
	"slices"
	"testing"
)

func TestStopRule(t *testing.T) {
	steady := slices.Repeat([]float64{3}, 100)
	rising := make([]float64, 100)
	for i := range rising {
		rising[i] = float64(i)
	}
	for _, tt := range []struct {
		name   string
		rule   StopRule
		series [][]float64
		want   int // blocks
	}{
		{"no precision", StopRule{Min: 4, Max: 50}, [][]float64{rising}, 4},
		{"precise at the first check", StopRule{Min: 10, Max: 50, Precision: 0.02}, [][]float64{steady, steady}, 10},
		{"too few samples for an interval", StopRule{Min: 2, Max: 50, Precision: 0.02}, [][]float64{steady}, 7},
		{"never precise", StopRule{Min: 10, Max: 33, Precision: 0.02}, [][]float64{rising}, 33},
		{"one metric of one target is not precise", StopRule{Min: 10, Max: 33, Precision: 0.02}, [][]float64{steady, rising, steady}, 33},
		{"no target works", StopRule{Min: 10, Max: 33, Precision: 0.02}, nil, 10},
		{"the maximum is below the minimum", StopRule{Min: 10, Max: 5, Precision: 0.02}, [][]float64{rising}, 10},
	} {
		n := 0
		for !tt.rule.Enough(n, func() [][]float64 {
			var first [][]float64
			for _, s := range tt.series {
				first = append(first, s[:n])
			}
			return first
		}) {
			n++
		}
		if n != tt.want {
			t.Errorf("%s: the rule stops after %d blocks, want %d", tt.name, n, tt.want)
		}
	}
}

func TestPrecise(t *testing.T) {
	series := normal.series(random(1), 50, 1)
	before := slices.Clone(series)
	s := Summarize(series, 1)
	width := relativeHalfWidth(s.Median, *s.CI)
	if !precise(series, width, 1, Resamples) || precise(series, width*0.999, 1, Resamples) {
		t.Errorf("precise disagrees with the half-width %g", width)
	}
	if !slices.Equal(series, before) {
		t.Error("precise changed its argument")
	}
	for name, bad := range map[string][]float64{"no value": nil, "NaN": {1, 2, 3, 4, 5, math.NaN()}, "infinite": {1, 2, 3, 4, 5, math.Inf(-1)}} {
		if precise(bad, 1, 1, Resamples) {
			t.Errorf("%s is precise", name)
		}
	}
}
