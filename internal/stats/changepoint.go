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
		hits := 1
		for range permutations {
			if q, _ := bestDivision(permuted(values, bounds, random), bounds); q >= best*(1-roundingError) {
				hits++
			}
		}
		p := float64(hits) / (permutations + 1)
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

// permuted returns the values with a random order in each segment.
func permuted(values []float64, bounds []int, random *rand.Rand) []float64 {
	permutation := slices.Clone(values)
	for i, start := range bounds[:len(bounds)-1] {
		segment := permutation[start:bounds[i+1]]
		random.Shuffle(len(segment), func(i, j int) { segment[i], segment[j] = segment[j], segment[i] })
	}
	return permutation
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
// For a fixed τ the sums of distances grow by the distances of one value with each κ, so that all divisions take n² steps.
func divide(x []float64) (best float64, division int) {
	n := len(x)
	if n < 2*MinSegment {
		return 0, 0
	}
	sums := make([]float64, n)   // the sum of all distances between the values up to an index
	rows := make([][]float64, n) // rows[k][j] is the sum of the distances from x[k] to the first j values, j <= k
	for k := range n {
		rows[k] = make([]float64, k+1)
		for j := range k {
			rows[k][j+1] = rows[k][j] + math.Abs(x[k]-x[j])
		}
		sums[k] = rows[k][k]
		if k > 0 {
			sums[k] += sums[k-1]
		}
	}
	for tau := MinSegment; tau <= n-MinSegment; tau++ {
		left := sums[tau-1]
		var cross, right float64
		for k := tau; k < n; k++ {
			cross += rows[k][tau]
			right += rows[k][k] - rows[k][tau]
			if m := k - tau + 1; m >= MinSegment {
				if q := energy(left, cross, right, float64(tau), float64(m)); division == 0 || q > best {
					best, division = q, tau
				}
			}
		}
	}
	return best, division
}

// energy is the scaled energy statistic (equations 5 and 6 of the paper) of n values before a division and m after it, from the sums of the
// distances before it, across it and after it.
func energy(left, cross, right, n, m float64) float64 {
	pairs := func(n float64) float64 { return n * (n - 1) / 2 }
	return n * m / (n + m) * (2*cross/(n*m) - left/pairs(n) - right/pairs(m))
}
