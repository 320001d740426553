package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sum is the sum of the typical values of independent groups, such as the logarithm of a cost that several benchmarks share.
type Sum struct {
	// Value is the sum of the estimates of Hodges and Lehmann, one for each group.
	Value float64
	// CI is the interval of Value. It is nil without groups, and if some group has fewer than MinSamples values.
	CI *Interval
	// P is the p-value of the hypothesis that Value is zero; NaN without CI.
	P float64
	// SE is the standard error of Value.
	SE float64
	// Dependent is set if the values of some group depend on the ones before, so that P is too small.
	Dependent bool
	freedom   float64 // of Student's t
}

// SumTypical adds the typical values of groups. Each group has differences of one kind, in the order of measurement, and the groups are independent.
//
// One group has Wilcoxon's signed-rank test and the interval that inverts it. Several have a standard error each, from that interval, and Student's t with the
// degrees of freedom of B. L. Welch, Biometrika 34 (1947) 28–35, and F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110–114. P is never below the
// smallest p-value of as many signs, so equal values are no proof.
func SumTypical(groups ...[]float64) Sum {
	s := Sum{P: math.NaN(), SE: math.NaN()}
	var variance, spread float64
	var ci Interval
	count, isShort := 0, len(groups) == 0
	for _, values := range groups {
		if len(values) < MinSamples {
			isShort = true
			s.Value += typical(values)
			continue
		}
		walsh := walshAverages(slices.Sorted(slices.Values(values)))
		ci = walsh.interval(signedRankCritical(len(values), 1-Level))
		s.Value += walsh.median()
		term := math.Pow((ci.Hi-ci.Lo)/2/student(len(values)).Quantile(0.975), 2)
		variance, spread = variance+term, spread+term*term/float64(len(values)-1)
		count += len(values)
		s.Dependent = s.Dependent || dependent(values)
	}
	if isShort {
		return s
	}
	s.SE, s.freedom = math.Sqrt(variance), float64(count-len(groups))
	if spread > 0 {
		s.freedom = variance * variance / spread
	}
	if len(groups) == 1 {
		s.CI, s.P = &ci, signedRank(groups[0])
		return s
	}
	half := s.student().Quantile(Level+(1-Level)/2) * s.SE
	s.CI, s.P = &Interval{s.Value - half, s.Value + half}, 1
	switch {
	case s.SE > 0:
		s.P = 2 * s.student().Survival(math.Abs(s.Value)/s.SE)
	case s.Value != 0:
		s.P = 0
	}
	s.P = max(s.P, smallestP(count))
	return s
}

// typical is the estimate of Hodges and Lehmann, 0 without values.
func typical(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return walshAverages(slices.Sorted(slices.Values(values))).median()
}

func (s Sum) student() distuv.StudentsT { return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: s.freedom} }

// Growth is the factor for the sizes of all groups so that a test at a level shows a value of this size with a probability of [Power]: the usual formula of
// a sample size. It is +Inf for a value of zero, and NaN without an interval.
func (s Sum) Growth(level float64) float64 {
	if s.CI == nil {
		return math.NaN()
	}
	need := (s.student().Quantile(1-level/2) + s.student().Quantile(Power)) * s.SE / math.Abs(s.Value)
	return need * need
}
