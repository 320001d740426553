package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// generator returns the source of random numbers for a resampling. The sequence is part of
// the definition of PCG. So a seed gives the same report with every Go release, as long as
// gonum does not change the way it draws from its distributions. The stream distinguishes
// the generators of one comparison.
func generator(seed, stream uint64) *rand.PCG { return rand.NewPCG(seed, stream) }

// medianInterval is the interval of the median of values whose dependence increases the variance of the median by a factor
// (see medianInflation): a resample of n/inflation values has the variance of n dependent ones. It is nil below
// MinSamples.
func medianInterval(sorted []float64, inflation float64, seed uint64, resamples int) *Interval {
	if len(sorted) < MinSamples {
		return nil
	}
	medians := resampledMedians(sorted, float64(len(sorted)-len(sorted)%2)/inflation, generator(seed, 0), resamples)
	ci := expandedInterval(medians, len(sorted))
	return &ci
}

// resampledMedians returns the medians of bootstrap resamples of size values from sorted. It draws the medians
// directly, in a time that does not depend on the size of the resamples. A resample is
// x[⌊nU₁⌋], x[⌊nU₂⌋], … for independent uniform U. ⌊n·⌋ is monotonic, so the k-th order
// statistic of the resample is x[⌊nU₍ₖ₎⌋]. U₍ₖ₎ of 2k uniforms has the distribution
// Beta(k, k+1), and U₍ₖ₊₁₎ is the least of the k uniforms above it.
//
// The size is even, n or n−1 without dependence (see Summarize); it need not be whole, because the distributions exist for any k. After each resample comes
// its mirror image, with the ranks counted from the other end, which is equally likely. So the
// medians of −x are exactly the negative medians of x, and swapping the two targets never
// changes a verdict. An odd count is rounded down to an even one.
func resampledMedians(sorted []float64, size float64, source *rand.PCG, count int) []float64 {
	n, last := float64(len(sorted)), len(sorted)-1
	k := max(1, size/2)
	lower := distuv.Beta{Alpha: k, Beta: k + 1, Src: source}
	gap := distuv.Exponential{Rate: k, Src: source}
	medians := make([]float64, 0, count)
	for len(medians)+2 <= count {
		u := lower.Rand()
		i := min(int(u*n), last)
		j := min(int((1-(1-u)*math.Exp(-gap.Rand()))*n), last)
		medians = append(medians, midpoint(sorted[i], sorted[j]), midpoint(sorted[last-i], sorted[last-j]))
	}
	return medians
}

// expandedInterval returns the expanded percentiles (see Summarize) of the estimates
// from bootstrap resamples of n values. It reorders the estimates.
func expandedInterval(estimates []float64, n int) Interval {
	stretch := math.Sqrt(float64(n) / float64(n-1))
	return percentileInterval(estimates, distuv.UnitNormal.CDF(-stretch*student(n).Quantile(0.975)))
}

// percentileInterval excludes the share tail of the estimates on each side. The ranks of its
// ends are symmetric, so that the interval of inverse ratios is the inverse of the interval.
func percentileInterval(estimates []float64, tail float64) Interval {
	k := int(tail * float64(len(estimates)))
	return Interval{Lo: selectRank(estimates, k), Hi: selectRank(estimates, len(estimates)-1-k)}
}

// student is Student's t distribution for the mean of n values.
func student(n int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
}

// selectRank returns the value at index k of the sorted values. It reorders values (Hoare's
// FIND, CACM 4 (1961) 321). A full sort of 10 000 estimates for two of them took most of
// a report's time.
func selectRank(values []float64, k int) float64 {
	lo, hi := 0, len(values)-1
	for lo < hi {
		pivot := values[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return values[k]
		}
	}
	return values[k]
}

// selectMedian returns the median of values, and reorders them.
func selectMedian(values []float64) float64 {
	n := len(values)
	return midpoint(selectRank(values, (n-1)/2), selectRank(values, n/2))
}
