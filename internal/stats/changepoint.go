package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// MinSegment is the least number of values between two change points.
const MinSegment = 3

// MinHistory is the least number of values for a change. 8 values have 70 divisions into halves, and 2 of them separate the lowest values from
// the highest: 2.9 %. For 7 values it is 2 divisions in 35, which is above 5 %.
const MinHistory = 8

// permutations is the number of permutations of a test for a change.
const permutations = 999

// ChangePoint is a change of the distribution of a series.
type ChangePoint struct {
	// At is the index of the first value after the change.
	At int
	// P is the p-value of the permutation test.
	P float64
	// Before and After are the medians of the segments beside the change.
	Before, After float64
}

// ChangePoints finds changes of the distribution of independent values in order, by E-divisive (D. S. Matteson and N. A. James, "A Nonparametric
// Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109 (2014) 334–345). The exponent of the distances is 1.
//
// The most likely division of any segment is tested by permutations within the segments, and the search ends with the first
// division that is not significant at [Alpha]. So a series without a change has a change point with a probability of 5 %. A series that is
// dependent, such as values that drift, has more. P counts the observed order among the permutations (B. Phipson and G. K. Smyth,
// "Permutation P-values Should Never Be Zero", 2010). The result is in order of At, and nil below MinHistory values or with a value that is
// not finite. It does not depend on the unit of the values.
func ChangePoints(values []float64, seed uint64) []ChangePoint {
	if len(values) < MinHistory || !allFinite(values) {
		return nil
	}
	random := rand.New(generator(seed, 0))
	bounds := []int{0, len(values)}
	var found []ChangePoint
	for {
		best, index := bestDivision(values, bounds)
		if index < 0 {
			break
		}
		p := permutationP(values, bounds, best*(1-roundingError), random)
		if p >= Alpha {
			break
		}
		found = append(found, ChangePoint{At: index, P: p})
		place, _ := slices.BinarySearch(bounds, index)
		bounds = slices.Insert(bounds, place, index)
	}
	slices.SortFunc(found, func(a, b ChangePoint) int { return a.At - b.At })
	for i := range found {
		place, _ := slices.BinarySearch(bounds, found[i].At)
		found[i].Before = Median(values[bounds[place-1]:bounds[place]])
		found[i].After = Median(values[bounds[place]:bounds[place+1]])
	}
	return found
}

// permutationP returns the share of the orders within the segments whose best division is at least a statistic. It ends at [Alpha], because the share
// of all permutations is then not below it either.
func permutationP(values []float64, bounds []int, statistic float64, random *rand.Rand) float64 {
	permutation := make([]float64, len(values))
	p := 1.0 / (permutations + 1)
	for hits, n := 1, 0; n < permutations && p < Alpha; n++ {
		copy(permutation, values)
		for i, start := range bounds[:len(bounds)-1] {
			segment := permutation[start:bounds[i+1]]
			random.Shuffle(len(segment), func(i, j int) { segment[i], segment[j] = segment[j], segment[i] })
		}
		if q, _ := bestDivision(permutation, bounds); q >= statistic {
			hits++
			p = float64(hits) / (permutations + 1)
		}
	}
	return p
}

// bestDivision returns the largest statistic of a division of any segment, with the index of its first value after the change, -1 if
// no segment can be divided.
func bestDivision(values []float64, bounds []int) (best float64, index int) {
	index = -1
	for i, start := range bounds[:len(bounds)-1] {
		if q, division := divide(values[start:bounds[i+1]]); division > 0 && (index < 0 || q > best) {
			best, index = q, start+division
		}
	}
	return best, index
}

// divide returns the largest statistic Q(τ, κ) of a segment with its τ (equation 7 of the paper): the values before τ are compared with the values from
// τ up to κ, and not with all that follow, so that a later change does not hide the first one. It is 0 and 0 if the segment is too short.
//
// With each κ the sums grow by the distances of one value, and with each τ the sums of each value by one distance, so that all divisions take n² steps.
// Multiplications by the inverses of sizes take a fraction of the time of divisions.
func divide(x []float64) (best float64, division int) {
	n := len(x)
	if n < 2*MinSegment {
		return 0, 0
	}
	best = math.Inf(-1)
	preceding := make([]float64, n) // the sum of the distances from a value to all values before it
	for j, value := range x {
		for i, peer := range x[j+1:] {
			preceding[j+1+i] += math.Abs(peer - value)
		}
	}
	inverses := make([]float64, n+1)
	for size := 1; size <= n; size++ {
		inverses[size] = 1 / float64(size)
	}
	distances := make([]float64, n) // the sum of the distances from a value to the values before τ
	var left float64                // the sum of all distances between the values before τ
	for tau := 1; tau <= n-MinSegment; tau++ {
		left += preceding[tau-1]
		size, value := float64(tau), x[tau-1]
		mean := 2 * left / (size - 1)
		var cross, right float64
		rest := x[tau:]
		distances, preceding := distances[tau:][:len(rest)], preceding[tau:][:len(rest)]
		sizes, totals := inverses[:len(rest)], inverses[tau+1:][:len(rest)]
		count := 0.0
		for i := range rest {
			count++
			distance := distances[i] + math.Abs(rest[i]-value)
			distances[i] = distance
			cross += distance
			right += preceding[i] - distance
			// The scaled energy statistic (equations 5 and 6 of the paper) of the values before τ and the next ones.
			q := (2*(cross-size*right*sizes[i]) - count*mean) * totals[i]
			if q > best && i+1 >= MinSegment && tau >= MinSegment {
				best, division = q, tau
			}
		}
	}
	return best, division
}
