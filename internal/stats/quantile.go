package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// UpperBound is the upper confidence bound of a quantile: with a probability of [Level] at least the given share of the population is not above it. It is an
// order statistic, so it holds for every distribution (W. J. Conover, "Practical Nonparametric Statistics", 3rd edition, section 3.2). ok is false
// if the values are too few: see [BoundSamples]. A value of +Inf stands for a measurement that failed.
func UpperBound(values []float64, share float64) (bound float64, ok bool) {
	law := distuv.Binomial{N: float64(len(values)), P: share}
	for i, v := range slices.Sorted(slices.Values(values)) {
		if law.CDF(float64(i)) >= Level {
			return v, !math.IsInf(v, 1)
		}
	}
	return math.NaN(), false
}

// BoundSamples is the least number of values for [UpperBound]: 59 for a share of 95 %.
func BoundSamples(share float64) int { return int(math.Ceil(math.Log(1-Level) / math.Log(share))) }
