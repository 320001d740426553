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
//     shown difference. Neither side has lost more than MostLost of its trials, and CI is still within the margin if each lost block counts as the worst of all.
//  4. Faster or Slower, by Better: Adjusted is below alpha. By is the typical value if it is shown to differ by itself, else the part with
//     the smallest p-value. It is Mixed if shown parts differ in both directions. A part in favour of a side that has lost more than MostLost of its
//     trials is not shown, nor is one that is not shown when each lost block counts as the worst of all. Lost trials cannot make a side
//     look worse than it is, so the other parts stay. It is TrialsLost if no part is left.
//  5. TooNoisy: the interval's half-width exceeds 25 %.
//  6. NoDifference, which is no proof of equality: a difference as large as Detectable
//     would have been shown.
//
// Comparisons without a p-value are not part of the family.
func Judge(family []Comparison, alpha, margin float64) []Comparison {
	verdicts := slices.Clone(family)
	p := make([]float64, len(verdicts))
	for i, c := range verdicts {
		p[i] = c.P
	}
	open := 0
	for i, adjusted := range Holm(p) {
		verdicts[i].Adjusted = adjusted
		if adjusted >= alpha { // false for NaN
			open++
		}
	}
	for i := range verdicts {
		if c := &verdicts[i]; c.CI != nil {
			// The threshold for an unadjusted p-value at the last of Holm's steps.
			level := alpha / float64(max(1, open))
			if c.LogRatios != nil && c.N <= exactLimit {
				c.Detectable = detectable(*c, level, c.Look.Level(level))
			} else {
				c.Detectable = detectableFormula(*c, level, c.Look.Level(level))
			}
			c.Parts = slices.Clone(c.Parts)
			for k := range c.Parts {
				c.Parts[k].Adjusted = c.adjust(c.withLost(c.Parts[k]), c.Adjusted)
			}
			c.By, c.Everywhere = "", false
			c.Verdict = c.verdict(alpha, level, margin)
		}
	}
	return verdicts
}

// JudgeTogether marks the differences that are shown over all comparisons together (Everywhere), by Holm's correction over all of them. If
// nothing differed, the chance that one of them or more is marked would be at most alpha. A difference is marked if one of its deciding parts is shown, and a mixed one
// if parts of both directions are.
func JudgeTogether(comparisons []*Comparison, alpha float64) {
	p := make([]float64, len(comparisons))
	for i, c := range comparisons {
		p[i] = c.P
	}
	for i, adjusted := range Holm(p) {
		c := comparisons[i]
		if !c.Differs() {
			continue
		}
		var list []PartDifference
		for _, d := range c.deciding(alpha) {
			if c.adjust(c.withLost(d), adjusted) < alpha {
				list = append(list, d)
			}
		}
		c.Everywhere = len(list) > 0
		if c.Verdict == Mixed {
			c.Everywhere = slices.ContainsFunc(list, func(d PartDifference) bool { return d.Larger != list[0].Larger })
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
	isLarge := func(d PartDifference) bool {
		return c.adjust(d.P, c.Adjusted) < alpha && math.Abs(math.Log(d.Ratio)) > math.Log1p(margin)
	}
	switch {
	case !differs && c.blind(level):
		return TooFew
	case c.within(margin) && !slices.ContainsFunc(c.parts(), isLarge):
		return Negligible
	case differs:
		deciding := c.deciding(alpha)
		if len(deciding) == 0 {
			return TrialsLost
		}
		first := deciding[0]
		c.By = first.Part
		opposite := func(d PartDifference) bool { return d.Larger != first.Larger }
		switch {
		case slices.ContainsFunc(deciding, opposite):
			return Mixed
		case first.Larger == (c.Better == Higher):
			return Faster
		default:
			return Slower
		}
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

// within reports whether the interval is within the margin, also if each lost block counts as the worst of all.
func (c *Comparison) within(margin float64) bool {
	if margin <= 0 || max(c.Lost.Baseline, c.Lost.Other) > MostLost {
		return false
	}
	contains := func(log Interval) bool { return log.Lo >= -math.Log1p(margin) && log.Hi <= math.Log1p(margin) }
	if !contains(Interval{math.Log(c.CI.Lo), math.Log(c.CI.Hi)}) {
		return false
	}
	if c.LogRatios == nil || c.Lost.BaselineBlocks+c.Lost.OtherBlocks == 0 {
		return true
	}
	isLarger := c.Better == Lower // a worse target has the larger values
	values := completed(completed(c.LogRatios, c.Lost.OtherBlocks, isLarger), c.Lost.BaselineBlocks, !isLarger)
	slices.Sort(values)
	return contains(walshAverages(values).interval(signedRankCritical(len(values), 1-Level)))
}

// parts are the parts of the comparison. A comparison without parts has its typical value.
func (c *Comparison) parts() []PartDifference {
	if c.Parts != nil {
		return c.Parts
	}
	d := PartDifference{Part: Typical, Ratio: c.Ratio, P: c.P, Larger: c.Ratio > 1}
	d.Adjusted = c.adjust(c.withLost(d), c.Adjusted)
	return []PartDifference{d}
}

// deciding are the parts with a shown difference: the typical value first, then by their p-values.
func (c *Comparison) deciding(alpha float64) []PartDifference {
	if c.Adjusted >= alpha {
		return nil
	}
	var list []PartDifference
	for _, d := range c.parts() {
		if d.Adjusted < alpha {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b PartDifference) int {
		if (a.Part == Typical) != (b.Part == Typical) {
			if a.Part == Typical {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.P, b.P)
	})
	return list
}

// withLost is the p-value of a part if the blocks that the better side has lost count as its worst ones. Of a part other than the typical value it is 1 with any
// lost block, and of every part after more than MostLost of the trials. The worst rank for lost blocks is by J. M. Lachin, Controlled Clinical Trials 20 (1999)
// 408–422.
func (c *Comparison) withLost(d PartDifference) float64 {
	share, blocks := c.Lost.Baseline, c.Lost.BaselineBlocks
	if d.Larger == (c.Better == Higher) {
		share, blocks = c.Lost.Other, c.Lost.OtherBlocks
	}
	switch {
	case share > MostLost:
		return 1
	case blocks == 0 || c.LogRatios == nil:
		return d.P
	case d.Part != Typical:
		return 1
	}
	return max(d.P, c.Look.P(min(1, signedRank(completed(c.LogRatios, blocks, !d.Larger))/partWeights[0])))
}

// completed adds log ratios of lost blocks, which are beyond all measured ones.
func completed(logRatios []float64, blocks int, isLarger bool) []float64 {
	size := 1.0
	for _, v := range logRatios {
		size = max(size, 2*math.Abs(v))
	}
	if !isLarger {
		size = -size
	}
	return slices.Concat(logRatios, slices.Repeat([]float64{size}, blocks))
}

// Holm adjusts the p-values of a family. If all adjusted values below a level count as
// significant, the probability of one error in the whole family is at most that level,
// for any dependence between them (S. Holm, "A Simple Sequentially Rejective Multiple
// Test Procedure", Scandinavian Journal of Statistics 6 (1979) 65–70). A NaN is not part of
// the family and stays NaN.
func Holm(p []float64) []float64 {
	adjusted := slices.Repeat([]float64{math.NaN()}, len(p))
	ascending := slices.DeleteFunc(order(p), func(i int) bool { return math.IsNaN(p[i]) })
	var hits float64
	for step, i := range ascending {
		hits = max(hits, min(1, p[i]*float64(len(ascending)-step)))
		adjusted[i] = hits
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
