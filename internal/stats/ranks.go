package stats

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// roundingError is the relative difference up to which two values count as tied. Such a
// difference comes from floating-point arithmetic, not from a measurement.
const roundingError = 1e-9

// Midranks ranks values from 1. Tied values get the mean of their ranks. A value is tied
// with the least value of a group if the two differ by at most tolerance.
func Midranks(values []float64, tolerance float64) []float64 {
	o := inOrder(values)
	defer o.release()
	return o.midranks(values, tolerance)
}

// midranks is Midranks of the ordered values.
func (o *ordering) midranks(values []float64, tolerance float64) []float64 {
	places, ranks := o.places, make([]float64, len(values))
	for start := 0; start < len(places); {
		end, minimum := start+1, values[places[start].index]
		for end < len(places) && values[places[end].index]-minimum <= tolerance {
			end++
		}
		for _, p := range places[start:end] {
			ranks[p.index] = float64(start+1+end) / 2
		}
		start = end
	}
	return ranks
}

// exactLimit is the greatest number of pairs for the exact distribution of the signed-rank
// sum, which takes n³ steps. For more pairs the normal approximation differs from it by less
// than 1 % of the p-value at p = 0.05.
const exactLimit = 100

// signedRank is the two-sided p-value of Wilcoxon's signed-rank test of paired log
// ratios: the probability that random signs give a sum of signed ranks as far from zero.
// It is a permutation test, and it is exact for this experiment: the order of the targets
// in each block is random, so that without a difference both signs are equally likely.
//
// Ratios of 1 have no sign and are left out (F. Wilcoxon, "Individual Comparisons
// by Ranking Methods", Biometrics Bulletin 1 (1945) 80–83); ties have midranks, and
// the exact distribution is the distribution of the midranks.
func signedRank(logRatios []float64) float64 {
	ranks, _ := signedRanks(logRatios)
	return signedRankP(ranks)
}

// signedRankP is the p-value of signedRank for signed ranks.
func signedRankP(ranks []float64) float64 {
	doubled, rankSum := signedRankSum(ranks)
	switch {
	case len(doubled) == 0:
		return 1
	case len(doubled) > exactLimit:
		return signedRankApproximate(doubled, rankSum)
	default:
		return signedRankExact(doubled, rankSum)
	}
}

// signedRanks are the signed ranks of log ratios, 0 without a sign, and the number of those with a sign.
func signedRanks(logRatios []float64) (ranks []float64, signed int) {
	sizes, places := make([]float64, 0, len(logRatios)), make([]int, 0, len(logRatios))
	for i, d := range logRatios {
		if math.Abs(d) > roundingError {
			sizes, places = append(sizes, math.Abs(d)), append(places, i)
		}
	}
	ranks = make([]float64, len(logRatios))
	for k, rank := range Midranks(sizes, roundingError) {
		ranks[places[k]] = math.Copysign(rank, logRatios[places[k]])
	}
	return ranks, len(places)
}

// signedRankSum returns the sizes of the ranks with a sign, and the smaller of the two sums
// of positive and negative ranks. All are doubled, because doubled midranks are integers.
func signedRankSum(ranks []float64) (doubled []int, sum int) {
	var positive, negative int
	for _, rank := range ranks {
		switch size := int(2 * math.Abs(rank)); {
		case rank > 0:
			doubled, positive = append(doubled, size), positive+size
		case rank < 0:
			doubled, negative = append(doubled, size), negative+size
		}
	}
	return doubled, min(positive, negative)
}

// signedRankExact computes the probability of each sum of positive ranks.
func signedRankExact(doubled []int, rankSum int) float64 {
	probability := make([]float64, rankSum+1) // of each sum of the ranks so far
	probability[0] = 1
	for _, rank := range doubled {
		for sum := rankSum; sum >= 0; sum-- {
			p := probability[sum] / 2
			if sum >= rank {
				p += probability[sum-rank] / 2
			}
			probability[sum] = p
		}
	}
	return min(1, 2*floats.Sum(probability))
}

// signedRankApproximate is the normal approximation with the correction for continuity. The
// variance of the midranks accounts for ties.
func signedRankApproximate(doubled []int, rankSum int) float64 {
	var total, variance float64
	for _, rank := range doubled {
		total += float64(rank)
		variance += float64(rank) * float64(rank) / 4
	}
	distance := max(0, total/2-float64(rankSum)-1)
	return 2 * distuv.UnitNormal.CDF(-distance/math.Sqrt(variance))
}
