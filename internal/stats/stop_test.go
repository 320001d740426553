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

// Few checks suffice for many blocks, and a precise run has at most five blocks or a twentieth of its blocks too many.
func TestChecksBecomeRarer(t *testing.T) {
	rule := StopRule{Min: 10, Max: 1 << 20, Precision: 0.02}
	last, checks := rule.Min, 0
	for n := rule.Min; n <= 10_000; n++ {
		if rule.Enough(n, func() [][]float64 { checks++; return [][]float64{{1}} }) {
			t.Fatalf("one value is precise after %d blocks", n)
		}
		if !rule.checks(n) {
			continue
		}
		if gap := n - last; gap > max(5, last/20) || gap != 0 && gap < 5 {
			t.Errorf("a check after %d blocks, and the next after %d", last, n)
		}
		last = n
	}
	// 18 checks up to 100 blocks, and log(100)/log(1.05) = 94 for two more powers of ten.
	if checks < 100 || checks > 120 {
		t.Errorf("%d checks of 10 000 blocks, want about 112", checks)
	}
}

// Invariant sample-order.
func TestPrecise(t *testing.T) {
	series := normal.series(random(1), 50, 1)
	original := slices.Clone(series)
	s := Summarize(series)
	width := relativeHalfWidth(s.Median, *s.CI)
	if !precise(series, width) || precise(series, width*0.999) {
		t.Errorf("precise disagrees with the half-width %g", width)
	}
	if !slices.Equal(series, original) {
		t.Error("precise changed its argument")
	}
	for name, bad := range map[string][]float64{"no value": nil, "NaN": {1, 2, 3, 4, 5, math.NaN()}, "infinite": {1, 2, 3, 4, 5, math.Inf(-1)}} {
		if precise(bad, 1) {
			t.Errorf("%s is precise", name)
		}
	}
}
