package stats

import (
	"math"
	"slices"
)

// noisyHalfWidth is the half-width of a ratio's interval, as a factor minus 1, above
// which a comparison without a difference is too noisy. At ± 25 % it cannot show the
// differences in the published studies (wang 5.6: gVisor starts 9 % later than runc,
// Kata 28 %), and a reader would take "no difference shown" for "equal".
const noisyHalfWidth = 0.25

// Judge returns comparisons that are shown together, with their verdicts, in a new slice.
// The caller chooses the family: all comparisons that a reader searches for a difference,
// such as all targets against the baseline on one metric, or the whole report. A larger
// family needs more blocks ([BlocksNeeded]).
//
// The verdict is the first of these that holds:
//
//  1. NotComparable: some value is not positive.
//  2. TooFew: the number of pairs is below MinSamples, or too small for this family to
//     show a difference of any size (MinP after Holm's correction is not below alpha).
//  3. Faster or Slower, by Better: Adjusted is below alpha and CI excludes 1. Both are
//     necessary: the test is about the whole distribution, the interval about the
//     medians in the report. It is TrialsLost if the better side has lost more than
//     MostLost of its trials. Lost trials cannot make a side look worse than it is, so
//     the other difference stays.
//  4. TooNoisy: the interval's half-width exceeds 25 %.
//  5. NoDifference, which is no proof of equality: a difference as large as Detectable
//     would have been shown.
//
// Comparisons without a p-value are not part of the family.
func Judge(family []Comparison, alpha float64) []Comparison {
	judged := slices.Clone(family)
	p := make([]float64, len(judged))
	for i, c := range judged {
		p[i] = c.P
	}
	open := 0
	for i, adjusted := range Holm(p) {
		judged[i].Adjusted = adjusted
		if adjusted >= alpha { // false for NaN
			open++
		}
	}
	for i := range judged {
		if c := &judged[i]; c.CI != nil {
			// The threshold for an unadjusted p-value at the last of Holm's steps.
			level := alpha / float64(max(1, open))
			c.Detectable = detectable(*c, level)
			c.Verdict = verdict(*c, alpha, level)
		}
	}
	return judged
}

// verdict is the verdict of a comparison with a p-value. level is the threshold for its unadjusted p-value.
func verdict(c Comparison, alpha, level float64) Verdict {
	below, above := c.CI.Hi < 1, c.CI.Lo > 1
	switch {
	case c.Adjusted < alpha && (below || above):
		better := below == (c.Better == Lower)
		switch {
		case better && c.Lost.Other > MostLost, !better && c.Lost.Baseline > MostLost:
			return TrialsLost
		case better:
			return Faster
		}
		return Slower
	case c.Adjusted >= alpha && c.MinP >= level:
		return TooFew
	case math.Sqrt(c.CI.Hi/c.CI.Lo)-1 > noisyHalfWidth:
		return TooNoisy
	default:
		return NoDifference
	}
}

// Holm adjusts the p-values of a family. If all adjusted values below a level count as
// significant, the probability of one error in the whole family is at most that level,
// for any dependence between them (S. Holm, "A Simple Sequentially Rejective Multiple
// Test Procedure", Scandinavian Journal of Statistics 6 (1979) 65–70). A NaN is not part of
// the family and stays NaN.
func Holm(p []float64) []float64 {
	adjusted := slices.Repeat([]float64{math.NaN()}, len(p))
	ascending := slices.DeleteFunc(order(p), func(i int) bool { return math.IsNaN(p[i]) })
	var reached float64
	for step, i := range ascending {
		reached = max(reached, min(1, p[i]*float64(len(ascending)-step)))
		adjusted[i] = reached
	}
	return adjusted
}

// BlocksNeeded is the least number of blocks for a paired comparison in a family of m to
// show any difference. With n blocks the smallest p-value is 2/2ⁿ (all blocks agree), and
// Holm's correction multiplies the smallest of m by m. The result is 6 blocks for one
// comparison, 8 for five, 11 for thirty and 14 for three hundred. It is a bound and not
// advice: a small difference needs more blocks.
func BlocksNeeded(m int) int {
	n := MinSamples
	for math.Ldexp(1, 1-n)*float64(m) >= Alpha {
		n++
	}
	return n
}
