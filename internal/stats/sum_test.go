package stats

import (
	"math"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// TestSumOfOpposites: two targets whose differences in two groups cancel have an equal sum. It differs from zero in at most 5 % of the simulations, for groups
// of unequal sizes and noise.
func TestSumOfOpposites(t *testing.T) {
	trials := simulation.Trials(t, 300, 5000)
	for _, m := range []model{normal, lognormal, tailed, disturbed, pareto} {
		for _, sizes := range [][]int{{6, 6}, {7, 14}, {12, 12, 30}} {
			r := random(uint64(len(sizes)))
			alarms, coverCount := 0, 0
			for range trials {
				var groups [][]float64
				offset := 1.0
				for i, n := range sizes {
					if i == len(sizes)-1 && i%2 == 0 {
						offset = 0
					}
					values := subtracted(logarithms(m.series(r, n, 1)), logarithms(m.series(r, n, 1)))
					for k := range values {
						values[k] = values[k]*float64(i+1) + offset
					}
					groups, offset = append(groups, values), -offset
				}
				s := SumTypical(groups...)
				alarms += count(s.P < Alpha)
				coverCount += count(covers(*s.CI, 0))
			}
			simulation.AtMost(t, 0.05, alarms, trials, "%s, %v: equal sums differ", m.name, sizes)
			simulation.AtLeast(t, 0.95, coverCount, trials, "%s, %v: the interval of the sum covers it", m.name, sizes)
		}
	}
}

// TestSum holds that few values have no interval, equal values are no proof beyond their number, and a group of its own has the signed-rank test.
func TestSum(t *testing.T) {
	if s := SumTypical([]float64{1, 2, 3}); s.CI != nil || !math.IsNaN(s.P) || s.Value != 2 || !math.IsNaN(s.Growth(Alpha)) {
		t.Errorf("3 values give %+v", s)
	}
	if s := SumTypical(); s.CI != nil || s.Value != 0 {
		t.Errorf("no group gives %+v", s)
	}
	ones := []float64{1, 1, 1, 1, 1, 1}
	if s := SumTypical(ones); s.P != 2.0/64 || *s.CI != (Interval{1, 1}) {
		t.Errorf("6 equal values give %+v", s)
	}
	if s := SumTypical(ones, ones); s.P != smallestP(12) || s.Value != 2 || s.CI.Lo != 2 {
		t.Errorf("two groups of 6 equal values give %+v", s)
	}
	if s := SumTypical(make([]float64, 6), make([]float64, 6)); s.P != 1 || s.Value != 0 {
		t.Errorf("zeros give %+v", s)
	}
	noise := []float64{-1, 1, -2, 2, 3, -2.5, 0.5, 1.5}
	if s := SumTypical(noise); s.P != signedRank(noise) || !(s.Growth(Alpha) > 1) {
		t.Errorf("noise gives %+v, and grows by %v", s, s.Growth(Alpha))
	}
}

// TestUpperBound: 59 values are the fewest, and 93 leave out the largest one
// (W. J. Conover, table A6).
func TestUpperBound(t *testing.T) {
	if n := BoundSamples(0.95); n != 59 {
		t.Errorf("a bound of 95 %% needs %d values", n)
	}
	var values []float64
	for n := 1; n <= 93; n++ {
		values = append(values, float64(n))
		bound, ok := UpperBound(values, 0.95)
		switch want := float64(n); {
		case n < 59 && ok, n >= 59 && !ok:
			t.Errorf("%d values: %v, %v", n, bound, ok)
		case n == 93 && bound != want-1, n >= 59 && n < 93 && bound != want:
			t.Errorf("the bound of %d values is the one at rank %v", n, bound)
		}
	}
	if _, ok := UpperBound(append(values[:58:58], math.Inf(1)), 0.95); ok {
		t.Error("a failed measurement has a bound")
	}
}

// TestUpperBoundHolds: 95 % of the population are below the bound in at least 95 % of the simulations.
func TestUpperBoundHolds(t *testing.T) {
	trials := simulation.Trials(t, 1000, 20_000)
	r := random(1)
	hits := 0
	for range trials {
		sample := make([]float64, 70)
		for i := range sample {
			sample[i] = r.Float64()
		}
		bound, _ := UpperBound(sample, 0.95)
		hits += count(bound >= 0.95)
	}
	simulation.AtLeast(t, 0.95, hits, trials, "the bound is above the quantile")
}
