package stats

import (
	"math"
	"slices"
	"testing"
)

// Counting gives the same order statistics as listing, also if many shifts are equal.
func TestShiftsWithoutAList(t *testing.T) {
	r := random(1)
	a, b := slices.Sorted(slices.Values(normal.series(r, 40, 1))), slices.Sorted(slices.Values(normal.series(r, 50, 1.1)))
	round := func(values []float64) (list []float64) {
		for _, v := range values {
			list = append(list, math.Round(v*10)/10)
		}
		return list
	}
	for name, s := range map[string]*shifts{
		"means of pairs": walshAverages(a), "differences": differences(a, b),
		"means of pairs with ties": walshAverages(round(a)), "differences with ties": differences(round(a), round(b)),
	} {
		counter := &shifts{a: s.a, b: s.b}
		for k := range s.count() {
			near(t, name, counter.at(k), s.at(k), 1e-15)
		}
	}
}

// The list of the lowest means has the order statistics of all means, and at most half as many means.
func TestLowestMeans(t *testing.T) {
	values := slices.Sorted(slices.Values(normal.series(random(2), 50, 1)))
	values[7] = values[6]
	for k := range len(values) * len(values) / 5 {
		lowest := &shifts{}
		lowest.listLowestWalsh(values, k)
		if got, want := lowest.at(k), walshAverages(values).at(k); got != want {
			t.Fatalf("the mean at index %d of the lowest is %v, want %v", k, got, want)
		}
		if limit := len(values) * (len(values) + 1) / 4; k < limit/3 && len(lowest.listed) > limit {
			t.Fatalf("%d means are listed for index %d, want at most %d", len(lowest.listed), k, limit)
		}
	}
}

// Hollander and Wolfe, table 3.1: the Hamilton depression scores of nine patients. The estimate is −0.46, and the interval of 96.1 % is
// from −0.786 to −0.010 (R's wilcox.test).
func TestHodgesLehmannPublished(t *testing.T) {
	first := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	second := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	differences := subtracted(second, first)
	slices.Sort(differences)
	w := walshAverages(differences)
	near(t, "estimate", w.median(), -0.46, 1e-9)
	ci := w.interval(signedRankCritical(9, 0.05))
	near(t, "lower end", ci.Lo, -0.786, 1e-9)
	near(t, "upper end", ci.Hi, -0.010, 1e-9)
}

// The interval excludes zero if and only if the test rejects.
func TestIntervalInvertsTheTest(t *testing.T) {
	r := random(2)
	for range 500 {
		n := 6 + r.IntN(20)
		values := make([]float64, n)
		for i := range values {
			values[i] = r.NormFloat64() + 0.5
		}
		ci := walshAverages(slices.Sorted(slices.Values(values))).interval(signedRankCritical(n, 0.05))
		if rejects := signedRank(values) < 0.05; rejects != (ci.Lo > 0 || ci.Hi < 0) {
			t.Fatalf("p = %g, and the interval is %v", signedRank(values), ci)
		}
		a, b := slices.Sorted(slices.Values(values)), make([]float64, 0, 9)
		for range 9 {
			b = append(b, r.NormFloat64())
		}
		slices.Sort(b)
		interval := differences(a, b).interval(mannWhitneyCritical(n, 9, 0.05))
		if rejects := mannWhitney(a, b) < 0.05; rejects != (interval.Lo > 0 || interval.Hi < 0) {
			t.Fatalf("n = %d: p = %g, and the interval is %v", n, mannWhitney(a, b), interval)
		}
	}
}

// The interval of a comparison excludes 1 if and only if the signed-rank test of its blocks rejects at 5 %. A simulation would need thousands of
// trials to find another level.
func TestIntervalOfAComparisonHasItsLevel(t *testing.T) {
	r := random(6)
	for trial := range uint64(100) {
		targets := run(r, normal, normal, 6+r.IntN(15), 1, 1.03)
		c := compare(targets[0], targets[1], Lower, trial, fewSwaps)
		if rejects := signedRank(c.LogRatios) < 1-Level; rejects != (c.CI.Lo > 1 || c.CI.Hi < 1) {
			t.Fatalf("p = %g, and the interval is %v", signedRank(c.LogRatios), *c.CI)
		}
	}
}

// Critical values of M. Hollander and D. Wolfe's tables: of the signed-rank sum, and of U.
func TestCriticalValues(t *testing.T) {
	for n, want := range map[int]int{5: -1, 6: 0, 7: 2, 8: 3, 10: 8, 20: 52, 50: 434} {
		if got := signedRankCritical(n, 0.05); got != want {
			t.Errorf("%d pairs: the critical sum is %d, want %d", n, got, want)
		}
	}
	for _, c := range []struct{ n, m, want int }{{3, 3, -1}, {4, 4, 0}, {5, 5, 2}, {8, 8, 13}, {10, 10, 23}, {20, 20, 127}} {
		if got := mannWhitneyCritical(c.n, c.m, 0.05); got != c.want {
			t.Errorf("%d and %d values: the critical U is %d, want %d", c.n, c.m, got, c.want)
		}
	}
	if exact, normal := signedRankCritical(exactLimit, 0.05), rankCritical(2525, 84587.5, 0.05); math.Abs(float64(exact-normal)) > 2 {
		t.Errorf("at %d pairs the critical sum is %d, by the normal approximation %d", exactLimit, exact, normal)
	}
}
