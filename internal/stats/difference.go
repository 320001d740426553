package stats

import (
	"math"
	"slices"
)

// Difference is what remains of a metric after others have been taken away from it, block by
// block, in the metric's unit.
type Difference struct {
	N int // blocks that hold all of them
	// Median over the blocks, NaN if there is no block or a value that is not finite.
	Median float64
	// CI is the bootstrap interval of Median, nil below MinSamples.
	CI *Interval
}

// Shown tells whether the interval excludes zero. If it does not, that is no proof that
// nothing was added.
func (d Difference) Shown() bool { return d.CI != nil && (d.CI.Lo > 0 || d.CI.Hi < 0) }

// Subtract takes the medians of other series away from that of whole in each block that all of
// them hold: what a layer adds, if whole goes through one layer more than the others together.
// Without others it describes whole itself.
//
// Median is the median of the blocks' differences, and CI the interval of that (see
// Summarize), so that whole blocks are resampled: what the host did to a block is in all of
// its values. Swapping two series changes the signs of Median and CI and nothing else.
//
// Within a block, parts that have been subtracted from one another add up to the whole. Their
// medians need not: the median is not additive. The mean would be, but one disturbed trial
// moves it.
//
// The interval covers the median of the differences in 94 % or more of simulated runs of 6
// to 20 blocks (TestDifferenceCoverage). There is no test and no correction for a family:
// of twenty intervals for layers that add nothing, one may exclude zero.
func Subtract(whole []Sample, less [][]Sample, seed uint64) Difference {
	return subtract(whole, less, seed, Resamples)
}

func subtract(whole []Sample, less [][]Sample, seed uint64, resamples int) Difference {
	blocks := byBlock(whole)
	taken := make([]map[int][]float64, len(less))
	for i, samples := range less {
		taken[i] = byBlock(samples)
	}
	var differences []float64
	for block, values := range blocks {
		left, held := Median(values), 0
		for _, other := range taken {
			if values, has := other[block]; has {
				left -= Median(values)
				held++
			}
		}
		if held == len(taken) {
			differences = append(differences, left)
		}
	}
	d := Difference{N: len(differences), Median: math.NaN()}
	if d.N == 0 || !allFinite(differences) {
		return d
	}
	slices.Sort(differences)
	d.Median = median(differences)
	d.CI = medianInterval(differences, seed, resamples)
	return d
}
