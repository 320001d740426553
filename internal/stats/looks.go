package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// RunLooks are the error probabilities of the looks at growing data: RunLooks[i] is the two-sided level of look i.
type RunLooks []float64

// NewRunLooks returns the levels for looks after first, first+1, …, last observations, whose error probabilities
// together are alpha. An interval of level RunLooks[i] at each look i covers the true value at all looks at once with a probability of
// 1 − alpha (repeated confidence intervals: C. Jennison & B. W. Turnbull, J. R. Stat. Soc. B 51 (1989) 305–361). So a run
// may stop at any look, for any reason.
//
// The levels spend alpha in the manner of O'Brien and Fleming: until the share t of the observations the probability of an error
// to one side is
//
//	2 − 2 Φ(z / √t),  z = Φ⁻¹(1 − alpha/4)
//
// (K. K. G. Lan & D. L. DeMets, Biometrika 70 (1983) 659–663, with alpha/2 for each side). Early looks need overwhelming evidence, and the last look
// has almost the level of a single one. The critical values are exact for normal observations of known variance: P. Armitage, C. K.
// McPherson & B. C. Rowe, J. R. Stat. Soc. A 132 (1969) 235–244, by numerical integration. [Pooled.Interval] uses each
// level with Student's t, the significance-level approach for an unknown variance (C. Jennison & B. W. Turnbull, "Group Sequential
// Methods", 2000, section 3.8). This approach errs in up to 1.2 times alpha, because a standard deviation that is small by chance
// grows only with further observations. So several looks have the levels for alpha/1.2 (TestLooksErrorRate).
func NewRunLooks(first, last int, alpha float64) RunLooks {
	const excess = 1.2
	if last > first {
		alpha /= excess
	}
	var fractions []float64
	for n := first; n <= last; n++ {
		fractions = append(fractions, float64(n)/float64(last))
	}
	levels := make(RunLooks, len(fractions))
	for i, z := range runBoundaries(fractions, alpha) {
		levels[i] = 2 * distuv.UnitNormal.Survival(z)
	}
	return levels
}

// obrienFleming is the spent part of alpha, on both sides together, at a share of the observations.
func obrienFleming(fraction, alpha float64) float64 {
	return 4 * distuv.UnitNormal.Survival(distuv.UnitNormal.Quantile(1-alpha/4)/math.Sqrt(fraction))
}

// Parameters of the integration. A look spends nothing if its part of alpha is below leastSpent, the error of the
// integration. gridPoints is odd, for Simpson's rule.
const (
	leastSpent = 1e-9
	gridPoints = 201
)

// runBoundaries returns the critical values of |Z| for looks at ascending fractions of the observations. The last fraction is 1. A look
// that cannot reject has +Inf.
//
// The score S = Z √t is a Brownian motion. density holds the density of S at the last look, for paths that have crossed no
// boundary, at the points of a grid.
func runBoundaries(fractions []float64, alpha float64) []float64 {
	normal := distuv.UnitNormal
	critical := make([]float64, len(fractions))
	grid, density := []float64{0}, []float64{1} // all paths start at 0
	weights := []float64{1}
	before, spent := 0.0, 0.0
	for k, t := range fractions {
		step := math.Sqrt(t - before)
		// crossing is the probability to be outside ±b now, and inside all earlier boundaries.
		crossing := func(b float64) float64 {
			sum := 0.0
			for i, u := range grid {
				sum += weights[i] * density[i] * (normal.Survival((b-u)/step) + normal.CDF((-b-u)/step))
			}
			return sum
		}
		const far = 9 // standard deviations
		hi := far * math.Sqrt(t)
		critical[k] = math.Inf(1)
		if due := obrienFleming(t, alpha) - spent; due > leastSpent {
			lo := 0.0
			for range 60 { // more halvings than the bits of the result
				if mid := midpoint(lo, hi); crossing(mid) > due {
					lo = mid
				} else {
					hi = mid
				}
			}
			critical[k] = hi / math.Sqrt(t)
			spent += crossing(hi)
		}
		nextGrid, nextWeights := simpsonRule(-hi, hi)
		next := make([]float64, len(nextGrid))
		for j, s := range nextGrid {
			for i, u := range grid {
				next[j] += weights[i] * density[i] * normal.Prob((s-u)/step) / step
			}
		}
		grid, weights, density, before = nextGrid, nextWeights, next, t
	}
	return critical
}

// simpsonRule returns the points and weights of Simpson's rule.
func simpsonRule(lo, hi float64) (points, weights []float64) {
	h := (hi - lo) / (gridPoints - 1)
	for i := range gridPoints {
		w := 2.0
		switch {
		case i == 0 || i == gridPoints-1:
			w = 1
		case i%2 == 1:
			w = 4
		}
		points, weights = append(points, lo+float64(i)*h), append(weights, w*h/3)
	}
	return points, weights
}
