package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// generator gives the random numbers of a resampling. PCG's sequence is part of its
// definition, so that a seed gives the same report with every Go release as long as gonum
// draws from its distributions in the same way. The stream tells apart the generators that
// one comparison needs.
func generator(seed, stream uint64) *rand.PCG { return rand.NewPCG(seed, stream) }

// medianInterval is the interval of the median of independent values, nil below
// MinSamples.
func medianInterval(sorted []float64, seed uint64, resamples int) *Interval {
	if len(sorted) < MinSamples {
		return nil
	}
	medians := resampledMedians(sorted, generator(seed, 0), resamples)
	ci := expandedInterval(medians, len(sorted))
	return &ci
}

// resampledMedians are the medians of bootstrap resamples of sorted, drawn without drawing
// the resamples, in a time that does not depend on their size: a resample is x[⌊nU₁⌋],
// x[⌊nU₂⌋], … for independent uniform U, and ⌊n·⌋ is monotonic, so that its k-th order
// statistic is x[⌊nU₍ₖ₎⌋]. Of 2k uniforms U₍ₖ₎ is Beta(k, k+1), and U₍ₖ₊₁₎ is the least of
// the k that lie above it.
//
// A resample has an even number of values, n or n−1 (see Summarize). Each is followed by its
// mirror image, with the ranks counted from the other end, which is as likely: so the
// medians of −x are exactly the negative medians of x, and no verdict depends on which of
// two targets is the baseline. The count is rounded down to an even one.
func resampledMedians(sorted []float64, source *rand.PCG, count int) []float64 {
	n, last := float64(len(sorted)), len(sorted)-1
	k := float64(len(sorted) / 2)
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

// order gives the indices of values in ascending order of the values, NaN first.
func order(values []float64) []int {
	indices := make([]int, len(values))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	return indices
}

// expandedInterval takes the expanded percentiles (see Summarize) of the estimates
// of bootstrap resamples of n values. It reorders the estimates.
func expandedInterval(estimates []float64, n int) Interval {
	stretch := math.Sqrt(float64(n) / float64(n-1))
	return percentileInterval(estimates, distuv.UnitNormal.CDF(-stretch*student(n).Quantile(0.975)))
}

// percentileInterval leaves the share tail of the estimates on either side. The ranks of
// its ends mirror each other, so that the interval of inverse ratios is the inverse of the
// interval.
func percentileInterval(estimates []float64, tail float64) Interval {
	k := int(tail * float64(len(estimates)))
	return Interval{Lo: selectRank(estimates, k), Hi: selectRank(estimates, len(estimates)-1-k)}
}

// student is Student's t distribution for the mean of n values.
func student(n int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
}

// selectRank gives the value that would stand at index k if values were sorted. It
// reorders values (Hoare's FIND, CACM 4 (1961) 321: sorting 10 000 estimates for
// two of them was the greater part of a report's time).
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
