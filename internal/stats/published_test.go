package stats

import (
	"math"
	"slices"
	"testing"
)

// NIST Statistical Reference Datasets, univariate summary statistics: certified means and
// standard deviations. NumAcc4's digits are chosen to break one-pass formulas.
func TestNIST(t *testing.T) {
	// One value, then pairs of values around it.
	mixture := func(centre, lo, hi float64) []float64 {
		return append([]float64{centre}, slices.Repeat([]float64{lo, hi}, 500)...)
	}
	for _, c := range []struct {
		name      string
		values    []float64
		mean, sd  float64
		tolerance float64
	}{
		{"Michelso", michelson(), 299.8524, 0.0790105478190518, 1e-12},
		{"NumAcc1", []float64{10000001, 10000003, 10000002}, 10000002, 1, 1e-12},
		{"NumAcc2", mixture(1.2, 1.1, 1.3), 1.2, 0.1, 1e-12},
		{"NumAcc3", mixture(1000000.2, 1000000.1, 1000000.3), 1000000.2, 0.1, 1e-9},
		{"NumAcc4", mixture(10000000.2, 10000000.1, 10000000.3), 10000000.2, 0.1, 1e-8},
	} {
		s := Summarize(c.values)
		near(t, c.name+" mean", s.Mean, c.mean, c.tolerance*c.mean)
		near(t, c.name+" standard deviation", s.SD, c.sd, c.tolerance)
	}
}

// michelson is the speed of light in air in 1000 km/s, 1879.
func michelson() []float64 {
	values := []float64{
		850, 740, 900, 1070, 930, 850, 950, 980, 980, 880, 1000, 980, 930, 650, 760, 810, 1000, 1000, 960, 960,
		960, 940, 960, 940, 880, 800, 850, 880, 900, 840, 830, 790, 810, 880, 880, 830, 800, 790, 760, 800,
		880, 880, 880, 860, 720, 720, 620, 860, 970, 950, 880, 910, 850, 870, 840, 840, 850, 840, 840, 840,
		890, 810, 810, 820, 800, 770, 760, 740, 750, 760, 910, 920, 890, 860, 880, 720, 840, 850, 850, 780,
		890, 840, 780, 810, 760, 810, 790, 810, 820, 850, 870, 870, 810, 740, 810, 940, 950, 800, 810, 870,
	}
	for i, v := range values {
		values[i] = (299000 + v) / 1000
	}
	return values
}

func TestSummaryOfMichelson(t *testing.T) {
	s := Summarize(michelson())
	near(t, "median", s.Median, 299.85, 1e-12)
	near(t, "least", s.Min, 299.62, 0)
	near(t, "greatest", s.Max, 300.07, 0)
	// From the sorted list: half of the values are within 45 km/s of the median.
	near(t, "MAD", s.MAD, 0.045, 1e-9)
	near(t, "P90", *s.P90, 299.96, 0)
	near(t, "P95", *s.P95, 299.98, 0)
	if s.P99 != nil {
		t.Errorf("P99 of 100 values is %g, want none: one value lies above it", *s.P99)
	}
}

func TestSignedRankPublished(t *testing.T) {
	for _, c := range []struct {
		name        string
		differences []float64
		p           float64
	}{
		// C. Darwin, heights of 15 pairs of maize plants in eighths of an inch (V = 96).
		{"maize", []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}, 1352.0 / 32768},
		// M. Hollander and D. Wolfe, Nonparametric Statistical Methods, table 3.1 (V = 40): one-sided
		// p = 0.01953.
		{"depression", []float64{0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01}, 20.0 / 512},
		{"all agree", []float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		// Two ties: of the 16 patterns of signs those with a sum of 0, 1.5, 8.5 or 10.
		{"ties", []float64{1, 1, 3, 4}, 2.0 / 16},
		{"ties, one against", []float64{-1, 1, 3, 4}, 6.0 / 16},
		{"no signs", []float64{0, 0, 0}, 1},
		{"no sign for some", []float64{0, 1, 2, 3, 0}, 2.0 / 8},
	} {
		near(t, c.name, signedRank(c.differences), c.p, 1e-12)
	}
}

// At exactLimit the normal approximation and the exact distribution agree.
func TestSignedRankApproximation(t *testing.T) {
	r := random(3)
	differences := make([]float64, exactLimit)
	for i := range differences {
		differences[i] = r.NormFloat64() + 0.2
	}
	ranks, _ := signedRanks(differences)
	doubled, rankSum := signedRankSum(ranks)
	exact := signedRankExact(doubled, rankSum)
	near(t, "approximation", signedRankApproximate(doubled, rankSum), exact, 0.01*exact)
	near(t, "p-value of few", signedRank(differences), exact, 0)
	for range 2 {
		differences = append(differences, differences...)
	}
	ranks, _ = signedRanks(differences)
	doubled, rankSum = signedRankSum(ranks)
	near(t, "p-value of many", signedRank(differences), signedRankApproximate(doubled, rankSum), 0)
}

func TestMannWhitneyPublished(t *testing.T) {
	// M. Hollander and D. Wolfe, table 4.1, permeability of placentas (W = 35): one-sided p = 0.1272.
	term := []float64{0.73, 0.80, 0.83, 1.04, 1.38, 1.45, 1.46, 1.64, 1.89, 1.91}
	preterm := []float64{0.74, 0.88, 0.90, 1.15, 1.21}
	near(t, "permeability", mannWhitney(term, preterm), 0.2544, 0.0001)
	near(t, "all equal", mannWhitney([]float64{1, 1}, []float64{1, 1}), 1, 0)
}

func TestHolmPublished(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ p, want []float64 }{
		// H. Abdi, "Holm's Sequential Bonferroni Procedure", Encyclopedia of Research Design (2010).
		{[]float64{0.000040, 0.016100, 0.612300}, []float64{0.000120, 0.032200, 0.612300}},
		// Worked by hand.
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.6, 0.7, 0.8}, []float64{1, 1, 1}},
		{[]float64{nan, 0.01, nan, 0.02}, []float64{nan, 0.02, nan, 0.02}},
		{nil, nil},
	} {
		got := Holm(c.p)
		for i, want := range c.want {
			if math.IsNaN(want) != math.IsNaN(got[i]) || math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
				break
			}
		}
	}
}

func TestDipPublished(t *testing.T) {
	for _, c := range []struct {
		name   string
		sorted []float64
		dip    float64
	}{
		// J. A. Hartigan and P. M. Hartigan (1985), quality of 63 statistics departments; dip as the
		// R package diptest gives it.
		{"faculty", []float64{
			30, 33, 35, 36, 37, 37, 39, 39, 39, 39, 39, 40, 40, 40, 40, 41, 42, 43, 43, 43, 44, 44, 45, 45, 46,
			46, 47, 47, 48, 48, 48, 49, 50, 50, 51, 52, 52, 53, 53, 53, 53, 53, 54, 54, 57, 57, 59, 60, 60, 60,
			61, 61, 61, 61, 62, 62, 62, 62, 63, 66, 70, 72, 72,
		}, 0.05952380952380952},
		// From the tests of diptest; the first two are the greatest and the least dip there is.
		{"two points", []float64{1, 1, 2, 2}, 1.0 / 4},
		{"convex", []float64{0, 1, 3, 6}, 1.0 / 8},
		{"five", []float64{0, 2, 3, 5, 6}, 2.0 / 15},
		{"five mirrored", []float64{0, 1, 3, 4, 6}, 2.0 / 15},
		{"one and nine", []float64{1, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 1.0 / 20},
	} {
		near(t, c.name, dip(c.sorted), c.dip, 1e-12)
	}
}

// Our simulation agrees with another one: quantiles at 0.98 of the dip of n uniform values as published by
// M. Maechler in the R package diptest, from 1 000 001 samples each.
func TestDipLimitPublished(t *testing.T) {
	for n, want := range map[int]float64{
		6: 0.1792, 7: 0.1752, 8: 0.1660, 9: 0.1571, 10: 0.1510, 15: 0.1289, 20: 0.1143,
		30: 0.0961, 50: 0.0767, 100: 0.0558, 200: 0.0403, 500: 0.0259, 1000: 0.0185, 5000: 0.00837,
	} {
		near(t, "dip limit", dipLimit(n), want, 0.01*want)
	}
}

func TestOverheadPublished(t *testing.T) {
	// wang 5.6: runc starts in 1.62 s on average, Kata in 2.06 s.
	near(t, "Kata's start over runc's", Overhead(2.06/1.62), 0.27, 0.005)
	// wang 5.8: Linpack fell from 77.19 to 53.59 GFlops: a loss has no sign.
	near(t, "loss", Overhead(53.59/77.19), 0.306, 0.0005)
}
