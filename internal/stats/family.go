package stats

import (
	"math"
	"slices"
)

// noisyHalfWidth is the half-width of a ratio's interval, as a factor less 1, from
// which a comparison that shows nothing is called too noisy: at ± 25 % it cannot tell
// apart what the published studies set out to tell apart (wang 5.6: gVisor starts
// 9 % later than runc, Kata 28 %), and "no difference shown" would be read as "equal".
const noisyHalfWidth = 0.25

// Judge gives verdicts to comparisons that are shown together, in a new slice. The family
// is the caller's choice: whatever a reader looks through for a difference, say all
// targets against the baseline on one metric, or the whole report. The larger it is, the
// more blocks it needs ([BlocksNeeded]).
//
// The verdict is the first of these that holds:
//
//  1. NotComparable: there is a value that is not positive.
//  2. TooFew: there are fewer than MinSamples pairs, or so few for this family that no
//     difference, however large, could have been shown (MinP after Holm's correction is
//     not below alpha).
//  3. Faster or Slower, by Better: Adjusted is below alpha and CI excludes 1. Both are
//     asked for: the test is about the whole distribution, the interval about the
//     medians that are shown.
//  4. TooNoisy: the interval's half-width exceeds 25 %.
//  5. NoDifference, which is no proof of equality: Detectable says how large a difference
//     would have been found.
//
// Comparisons without a p-value are no part of the family.
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
			// What an unadjusted p-value has to pass at the last of Holm's steps.
			level := alpha / float64(max(1, open))
			c.Detectable = detectable(*c, level)
			c.Verdict = verdict(*c, alpha, level)
		}
	}
	return judged
}

// verdict is that of a comparison with a p-value, of which level would have been passed
// if it had been significant.
func verdict(c Comparison, alpha, level float64) Verdict {
	below, above := c.CI.Hi < 1, c.CI.Lo > 1
	switch {
	case c.Adjusted < alpha && (below || above):
		if below == (c.Better == Lower) {
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

// Holm adjusts the p-values of a family so that calling those below a level
// significant errs, over the whole family, with at most that probability, whatever the
// dependence between them (S. Holm, "A Simple Sequentially Rejective Multiple Test
// Procedure", Scandinavian Journal of Statistics 6 (1979) 65–70). A NaN is no part of the
// family and stays NaN.
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

// BlocksNeeded is the least number of blocks with which a paired comparison in a family
// of m can show anything at all: with n blocks no p-value is below 2/2ⁿ (all blocks
// agree), and Holm's correction multiplies the smallest of m by m. It takes 6 blocks
// for one comparison, 8 for five, 11 for thirty, 14 for three hundred. It is a bound, no
// advice: to see a small difference takes more.
func BlocksNeeded(m int) int {
	n := MinSamples
	for math.Ldexp(1, 1-n)*float64(m) >= Alpha {
		n++
	}
	return n
}
