// Package tail bounds the rare values of a series: the probabilistic worst case of an operation, for readers with deadlines. The median
// of a sample shows nothing of them, and its maximum grows with the number of samples.
//
// The method is peaks over threshold (S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, chapters 4 and 5).
// The excesses over a high threshold follow a generalised Pareto distribution for nearly every distribution of the values, if the samples
// come from one stationary process. [Fit] checks this condition and either returns a [Model] or a [Refusal]. [Model.Bound] extrapolates
// to a value that one sample exceeds with a given probability.
//
// An extrapolation is a statement about the future. It holds only for the machine, the load and the program that were measured, and it is no proof:
// a path that no sample took is in no bound. So the package refuses rather than guesses:
//
//   - It needs [MinExceedances] clusters above the threshold, and goes at most [Decades] decades beyond 1/N.
//   - It refuses series that drift, that depend on their past beyond the clusters, whose tail has no stable shape, whose values are too
//     coarse, or whose tail is so heavy that its variance may be infinite.
//   - It refuses values that are negative or not finite.
//
// A refusal contains the test, its figures and the remedy, and the number of samples that would do if more samples may help.
//
// [Series] needs the largest values alone, with their places, so that a million samples take bounded memory.
package tail

import (
	"math"
	"slices"
)

const (
	// MinExceedances is the smallest number of clusters above the threshold.
	MinExceedances = 100
	// Decades is the largest distance of a bound from 1/N, in powers of ten.
	Decades = 2
	// mostShare is the largest share of the samples above the threshold. In simulations with a tenth, one bound of a gamma distribution in six was too low.
	mostShare = 0.05
	// mostExceedances limits the effort. More exceedances hardly narrow an interval that extrapolates.
	mostExceedances = 1000
)

// Series is the largest values of N samples.
type Series struct {
	N int
	// At are the places of the values among the samples, from 0 and ascending. Values has the same length.
	At     []int
	Values []float64
	// Floor is complete from above: every sample that is greater is in Values.
	Floor float64
}

// Of returns the series of all given samples.
func Of(samples []float64) Series {
	s := Series{N: len(samples), Values: slices.Clone(samples), Floor: math.Inf(-1)}
	for i := range samples {
		s.At = append(s.At, i)
	}
	return s
}

// Join puts series behind one another, such as the series of each trial of a cell. The floor is the highest one.
func Join(parts ...Series) Series {
	union := Series{Floor: math.Inf(-1)}
	for _, s := range parts {
		for _, place := range s.At {
			union.At = append(union.At, union.N+place)
		}
		union.Values = append(union.Values, s.Values...)
		union.N += s.N
		union.Floor = max(union.Floor, s.Floor)
	}
	return union
}

// Max is the largest value, NaN without any.
func (s Series) Max() float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	return slices.Max(s.Values)
}

// above returns the samples that are greater than the threshold.
func (s Series) above(threshold float64) Series {
	out := Series{N: s.N, Floor: threshold}
	for i, v := range s.Values {
		if v > threshold {
			out.At, out.Values = append(out.At, s.At[i]), append(out.Values, v)
		}
	}
	return out
}
