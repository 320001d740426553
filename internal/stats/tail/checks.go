package tail

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// level is the level of each single check of a series. The checks together refuse at most one sound series in twenty: see TestCoverageOfBounds.
const level = 0.005

// lags is the number of lags of LjungBox.
const lags = 10

// Variation is the coefficient of variation of excesses, standard deviation over mean. It is 1 for an exponential tail, below 1 for a lighter
// and above 1 for a heavier one. Z is its distance from 1 in standard errors of an exponential tail, √n·(CV − 1), which is asymptotically normal
// (J. del Castillo, J. Daoudi and R. Lockhart, "Methods to Distinguish Between Polynomial and Exponential Tails", Scandinavian Journal of Statistics 41
// (2014) 382; J. Abella et al., "Measurement-Based Worst-Case Execution Time Estimation Using the Coefficient of Variation", ACM TODAES 22 (2017) 72).
type Variation struct{ CV, Z float64 }

// Weight compares a tail with the exponential distribution.
type Weight string

// The weights of tails.
const (
	Light       Weight = "lighter than exponential"
	Exponential Weight = "not distinguished from exponential"
	Heavy       Weight = "heavier than exponential"
)

// VariationOf computes the coefficient of variation of excesses.
func VariationOf(excesses []float64) Variation {
	mean, sd := stat.MeanStdDev(excesses, nil)
	cv := sd / mean
	return Variation{CV: cv, Z: math.Sqrt(float64(len(excesses))) * (cv - 1)}
}

// Weight is the result of the two-sided test at 5 %.
func (v Variation) Weight() Weight {
	limit := distuv.UnitNormal.Quantile(0.975)
	switch {
	case v.Z > limit:
		return Heavy
	case v.Z < -limit:
		return Light
	}
	return Exponential
}

// LjungBox is the statistic of G. M. Ljung and G. E. P. Box ("On a measure of lack of fit in time series models", Biometrika 65 (1978) 297) of the
// ranks of values, over 10 lags, with its p-value. Ranks make it independent of the tail's weight.
func LjungBox(values []float64) (q, p float64) {
	ranks := stats.Midranks(values, 0)
	n := len(ranks)
	mean := stat.Mean(ranks, nil)
	var square float64
	for _, r := range ranks {
		square += (r - mean) * (r - mean)
	}
	if square == 0 {
		return 0, 1
	}
	for lag := 1; lag <= lags; lag++ {
		var product float64
		for i := lag; i < n; i++ {
			product += (ranks[i] - mean) * (ranks[i-lag] - mean)
		}
		r := product / square
		q += r * r / float64(n-lag)
	}
	q *= float64(n) * float64(n+2)
	return q, distuv.ChiSquared{K: lags}.Survival(q)
}

// EvenRate is the Kolmogorov–Smirnov distance of the places of exceedances among n samples from a constant rate, with its p-value by
// M. A. Stephens ("EDF Statistics for Goodness of Fit", JASA 69 (1974) 730).
func EvenRate(places []int, n int) (d, p float64) {
	count := float64(len(places))
	for i, place := range places {
		u := (float64(place) + 0.5) / float64(n)
		d = max(d, u-float64(i)/count, float64(i+1)/count-u)
	}
	x := d * (math.Sqrt(count) + 0.12 + 0.11/math.Sqrt(count))
	if x < 0.2 {
		return d, 1 // the series converges slowly, and is 1 to ten digits
	}
	for j := 1; j <= 100; j++ {
		sign := float64(1 - 2*((j+1)%2))
		p += 2 * sign * math.Exp(-2*float64(j*j)*x*x)
	}
	return d, min(1, max(0, p))
}

// Trend is Spearman's rank correlation of values with their order, with its p-value.
func Trend(values []float64) (rho, p float64) {
	n := float64(len(values))
	order := make([]float64, len(values))
	for i := range order {
		order[i] = float64(i)
	}
	rho = stat.Correlation(stats.Midranks(values, 0), order, nil)
	if math.IsNaN(rho) {
		return 0, 1
	}
	t := math.Abs(rho) * math.Sqrt((n-2)/max(1e-300, 1-rho*rho))
	return rho, 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Survival(t)
}

// AndersonDarling is the distance of excesses from a distribution, weighted towards its tail (V. Choulakian and M. A. Stephens, "Goodness-of-Fit
// Tests for the Generalized Pareto Distribution", Technometrics 43 (2001) 478).
func AndersonDarling(excesses []float64, g GPD) float64 {
	sorted := stats.Sorted(excesses)
	n := len(sorted)
	hazards := make([]float64, n)
	for i, y := range sorted {
		hazards[i] = g.hazard(y)
	}
	var sum float64
	for i, hazard := range hazards {
		left := math.Log(max(-math.Expm1(-hazard), 1e-300))
		right := -min(hazards[n-1-i], 700)
		sum += float64(2*i+1) * (left + right)
	}
	return -float64(n) - sum/float64(n)
}

// misfits are the values that AndersonDarling exceeds with probability 0.05 if the distribution is fitted by MaxLikelihood, by the
// shape. They hardly depend on the number of excesses. TestMisfits computes them with at least 6000 series of 300 excesses each.
var misfits = []struct{ shape, limit float64 }{
	{-1, 1.626}, {-0.75, 1.333}, {-0.5, 1.183}, {-0.25, 1.080}, {0, 0.958}, {0.25, 0.887}, {0.5, 0.826}, {1, 0.764},
}

// misfit interpolates misfits.
func misfit(shape float64) float64 {
	for i, right := range misfits {
		switch {
		case shape > right.shape:
		case i == 0:
			return right.limit
		default:
			left := misfits[i-1]
			return left.limit + (right.limit-left.limit)*(shape-left.shape)/(right.shape-left.shape)
		}
	}
	return misfits[len(misfits)-1].limit
}
