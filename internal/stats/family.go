package stats

import (
	"cmp"
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
// such as all targets against the baseline on one metric. A larger
// family needs more blocks ([BlocksNeeded]). margin is the relative difference below which a difference does not matter: 0.03 is 3 %.
//
// The verdict is the first of these that holds:
//
//  1. NotComparable: some value is not positive.
//  2. TooFew: the number of pairs is below MinSamples, or too small for this family to
//     show a difference of any size: the smallest p-value of so many pairs that differ, after Holm's correction, is not below alpha.
//  3. Negligible: CI is within the margin, and so are all parts that are shown to differ. That holds with and without a
//     shown difference.
//  4. Faster or Slower, by Better: Adjusted is below alpha. By is the typical value if it is shown to differ by itself, else the part with
//     the smallest p-value. It is Mixed if shown parts differ in both directions. It is TrialsLost if
//     the better side has lost more than MostLost of its trials, or if the
//     difference is not shown when each lost block counts as the worst of all. Lost trials cannot make a side look worse than it
//     is, so the other difference stays.
//  5. TooNoisy: the interval's half-width exceeds 25 %.
//  6. NoDifference, which is no proof of equality: a difference as large as Detectable
//     would have been shown.
//
// Comparisons without a p-value are not part of the family.
func Judge(family []Comparison, alpha, margin float64) []Comparison {
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
			if c.LogRatios != nil && c.N <= exactLimit {
				c.Detectable = detectable(*c, level, c.Look.Level(level))
			} else {
				c.Detectable = detectableFormula(*c, level, c.Look.Level(level))
			}
			c.Parts = slices.Clone(c.Parts)
			for k := range c.Parts {
				c.Parts[k].Adjusted = c.adjust(c.Parts[k].P, c.Adjusted)
			}
			c.By, c.Everywhere = "", false
			c.Verdict = c.verdict(alpha, level, margin)
		}
	}
	return judged
}

// JudgeTogether marks the differences that are shown over all comparisons together (Everywhere), by Holm's correction over all of them. If
// nothing differed, the chance that one of them or more is marked would be at most alpha. A difference is marked if one of its deciding parts is shown, and a mixed one
// if parts of both directions are.
func JudgeTogether(all []*Comparison, alpha float64) {
	p := make([]float64, len(all))
	for i, c := range all {
		p[i] = c.P
	}
	for i, adjusted := range Holm(p) {
		c := all[i]
		if !c.Differs() {
			continue
		}
		var shown []PartDifference
		for _, d := range c.deciding(alpha) {
			if c.adjust(d.P, adjusted) < alpha {
				shown = append(shown, d)
			}
		}
		c.Everywhere = len(shown) > 0
		if c.Verdict == Mixed {
			c.Everywhere = slices.ContainsFunc(shown, func(d PartDifference) bool { return d.Larger != shown[0].Larger })
		}
	}
}

// adjust applies to another p-value of the comparison the factor that makes adjusted of P.
func (c *Comparison) adjust(p, adjusted float64) float64 {
	return min(1, p/c.P*adjusted)
}

// verdict is the verdict of a comparison with a p-value. level is the threshold for its unadjusted p-value. It sets By.
func (c *Comparison) verdict(alpha, level, margin float64) Verdict {
	differs := c.Adjusted < alpha
	deciding := c.deciding(alpha)
	switch {
	case !differs && c.blind(level):
		return TooFew
	case c.within(margin) && !slices.ContainsFunc(deciding, func(d PartDifference) bool { return math.Abs(math.Log(d.Ratio)) > math.Log1p(margin) }):
		return Negligible
	case differs:
		first := deciding[0]
		c.By = first.Part
		opposite := func(d PartDifference) bool { return d.Larger != first.Larger }
		if slices.ContainsFunc(deciding, opposite) {
			return Mixed
		}
		verdict := Slower
		if first.Larger == (c.Better == Higher) {
			verdict = Faster
		}
		if c.lostBy(verdict, alpha) {
			c.By = ""
			return TrialsLost
		}
		return verdict
	case math.Sqrt(c.CI.Hi/c.CI.Lo)-1 > noisyHalfWidth:
		return TooNoisy
	default:
		return NoDifference
	}
}

// blind reports whether no difference of any size could have a p-value below a level. Pairs of equal values do not make a comparison
// blind: they show that there is no difference in their blocks.
func (c *Comparison) blind(level float64) bool {
	return c.MinP >= level && (c.LogRatios == nil || c.Look.P(smallestP(c.N)) >= level)
}

// within reports whether the interval is within the margin.
func (c *Comparison) within(margin float64) bool {
	return margin > 0 && c.CI.Lo >= 1/(1+margin) && c.CI.Hi <= 1+margin
}

// deciding are the parts with a shown difference: the typical value first, then by their p-values. Without parts it is the
// typical value if the comparison shows a difference.
func (c *Comparison) deciding(alpha float64) []PartDifference {
	if c.Adjusted >= alpha {
		return nil
	}
	if c.Parts == nil {
		return []PartDifference{{Part: Typical, Ratio: c.Ratio, P: c.P, Adjusted: c.Adjusted, Larger: c.Ratio > 1}}
	}
	var shown []PartDifference
	for _, d := range c.Parts {
		if d.Adjusted < alpha {
			shown = append(shown, d)
		}
	}
	slices.SortStableFunc(shown, func(a, b PartDifference) int {
		if (a.Part == Typical) != (b.Part == Typical) {
			if a.Part == Typical {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.P, b.P)
	})
	return shown
}

// lostBy reports whether the better side of a difference has lost too many trials to be called better.
func (c *Comparison) lostBy(verdict Verdict, alpha float64) bool {
	share, blocks, worst := c.Lost.Other, c.Lost.OtherBlocks, 1.0
	if verdict == Slower {
		share, blocks, worst = c.Lost.Baseline, c.Lost.BaselineBlocks, -1
	}
	if c.Better == Higher {
		worst = -worst
	}
	switch {
	case share > MostLost:
		return true
	case blocks == 0 || c.LogRatios == nil:
		return false
	case c.By != Typical:
		return true
	}
	size := 1.0
	for _, v := range c.LogRatios {
		size = max(size, 2*math.Abs(v))
	}
	// A worst rank for lost blocks: J. M. Lachin, Controlled Clinical Trials 20 (1999) 408–422.
	completed := append(slices.Clone(c.LogRatios), slices.Repeat([]float64{worst * size}, blocks)...)
	return c.adjust(c.Look.P(min(1, signedRank(completed)/partWeights[0])), c.Adjusted) >= alpha
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
