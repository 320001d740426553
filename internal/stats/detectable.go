package stats

import "math"

// powerMargin is the power that the formula of detectable is asked for so that the
// verdict has Power: it has to be shown by the test and by the interval, and the standard
// error is itself an estimate. Without a margin the simulated power is 76–81 % for
// normal noise and 72–79 % for skewed noise.
const powerMargin = 0.85

// detectable is the smallest relative difference that a comparison would have shown at a
// level with a probability of Power:
//
//	exp((t at 1−level/2 + t at powerMargin) · LogSE) − 1
//
// with Student's t of N−1 degrees of freedom (the usual formula of a sample size, such as
// J. Cohen, "Statistical Power Analysis", 1988, turned round). It is for a target that is
// slower, or has the higher score, by that much; in the other direction it errs to the safe
// side.
//
// With few blocks whose noise is of two modes, or hit by many outliers, it promises too
// much: the power is then about one half. Such series bear a warning.
func detectable(c Comparison, level float64) float64 {
	if c.MinP >= level {
		return math.Inf(1)
	}
	t := student(c.N)
	return math.Expm1((t.Quantile(1-level/2) + t.Quantile(powerMargin)) * c.LogSE)
}

// logStandardError is the standard error of the log of a ratio: what the interval of the
// medians implies, or what the rank test's own interval implies where that is wider. Outliers
// widen the second, gaps between modes the first.
func logStandardError(ci Interval, rankWidth float64, n int) float64 {
	return max(math.Log(ci.Hi/ci.Lo), rankWidth) / 2 / student(n).Quantile(0.975)
}

// signedRankWidth is the width of the 95 % interval that belongs to the signed-rank test:
// between two order statistics of the means of all pairs of values (Walsh averages; J. L.
// Hodges and E. L. Lehmann, Annals of Mathematical Statistics 34 (1963) 598–611). It is 0,
// unknown, above exactLimit, where the pairs become many and the tests' efficiency is no
// longer in doubt.
func signedRankWidth(values []float64) float64 {
	n := len(values)
	if n > exactLimit {
		return 0
	}
	means := make([]float64, 0, n*(n+1)/2)
	for i, v := range values {
		for _, w := range values[:i+1] {
			means = append(means, midpoint(v, w))
		}
	}
	return rankWidth(means, float64(n*(n+1)*(2*n+1))/24)
}

// mannWhitneyWidth is the same for the U test: the means are the differences between all
// values of one side and of the other.
func mannWhitneyWidth(a, b []float64) float64 {
	if max(len(a), len(b)) > exactLimit {
		return 0
	}
	differences := make([]float64, 0, len(a)*len(b))
	for _, v := range a {
		for _, w := range b {
			differences = append(differences, w-v)
		}
	}
	return rankWidth(differences, float64(len(a)*len(b)*(len(a)+len(b)+1))/12)
}

// rankWidth takes the ends of the interval from the normal approximation of the count of
// shifts below zero, whose variance is given. It reorders the shifts.
func rankWidth(shifts []float64, variance float64) float64 {
	k := max(0, int(float64(len(shifts))/2-1.96*math.Sqrt(variance)))
	return selectRank(shifts, len(shifts)-1-k) - selectRank(shifts, k)
}
