package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat/combin"
)

// Compare compares a target with the baseline of the same run, paired by block: the
// host disturbs both in the same way within a block. Only blocks with both count.
// Several samples of a block are first reduced to their median.
//
// Ratio is the median over the blocks of other/baseline within the block. Its interval
// is the interval of a median (see Summarize), so that whole blocks are resampled. Ratio
// is not the quotient of the two medians. Both estimate the same factor and mostly
// agree, but the quotient makes little use of the pairs. With noise of 2 % per trial,
// blocks that differ by 5 % and a drift of 30 % over 20 blocks, the standard error of the
// quotient is 1.39 %. The standard error of the median of ratios is 0.78 %
// (TestPairsSharpenTheRatio), which is worth three times as many blocks.
//
// P is the p-value of Wilcoxon's signed-rank test of the blocks' log ratios, exact up to 100
// blocks. The verdict is for a family of one; use [Judge] for comparisons that are
// shown together. Swapping baseline and other inverts Ratio and CI and does not change P.
//
// A ratio needs positive values. With a value that is zero, negative or not finite the
// verdict is NotComparable, and all numbers but N are unknown (NaN, Detectable +Inf).
func Compare(baseline, other []Sample, better Direction, seed uint64) Comparison {
	return compare(baseline, other, better, seed, Resamples)
}

func compare(baseline, other []Sample, better Direction, seed uint64, resamples int) Comparison {
	a, b := pair(baseline, other)
	c := newComparison(a, b, better)
	if c.Verdict == NotComparable || c.N == 0 {
		return c
	}
	logRatios := logarithms(b)
	for i, log := range logarithms(a) {
		// A difference of logarithms changes only its sign if a and b are swapped. The logarithm of the
		// quotient may also change its last bits.
		logRatios[i] -= log
	}
	sorted := slices.Clone(logRatios)
	slices.Sort(sorted)
	c.Ratio = math.Exp(median(sorted))
	ci := medianInterval(sorted, seed, resamples)
	if ci == nil {
		return c
	}
	c.CI = &Interval{Lo: math.Exp(ci.Lo), Hi: math.Exp(ci.Hi)}
	c.LogSE = logStandardError(*c.CI, signedRankWidth(sorted), c.N)
	c.P = signedRank(logRatios)
	c.MinP = math.Ldexp(1, 1-c.N)
	return Judge([]Comparison{c}, Alpha)[0]
}

// CompareUnpaired compares two runs, or other samples without common blocks, as
// independent samples. Ratio is the quotient of the medians. Its interval resamples each
// side independently. P is the p-value of the Mann–Whitney U test (by benchmath: exact up
// to 50 values a side, 25 with ties). The rest is the same as in Compare, except that swapping the
// two inverts CI only up to the noise of resampling.
//
// One run does not show the variation between runs: every change of the host between
// two runs is part of their difference.
func CompareUnpaired(baseline, other []float64, better Direction, seed uint64) Comparison {
	return compareUnpaired(baseline, other, better, seed, Resamples)
}

func compareUnpaired(baseline, other []float64, better Direction, seed uint64, resamples int) Comparison {
	c := newComparison(baseline, other, better)
	if c.Verdict == NotComparable || c.N == 0 {
		return c
	}
	a, b := slices.Clone(baseline), slices.Clone(other)
	slices.Sort(a)
	slices.Sort(b)
	c.Ratio = median(b) / median(a)
	if c.N < MinSamples {
		return c
	}
	medians := resampledMedians(a, generator(seed, 0), resamples)
	ratios := resampledMedians(b, generator(seed, 1), resamples)
	for i, m := range medians {
		ratios[i] /= m
	}
	ci := expandedInterval(ratios, c.N)
	c.CI = &ci
	c.LogSE = logStandardError(ci, mannWhitneyWidth(logarithms(a), logarithms(b)), c.N)
	c.P = mannWhitney(a, b)
	c.MinP = 2 * math.Exp(-combin.LogGeneralizedBinomial(float64(len(a)+len(b)), float64(len(a))))
	return Judge([]Comparison{c}, Alpha)[0]
}

// mannWhitney is the two-sided p-value of the Mann–Whitney U test of sorted values. It is 1
// if all values are equal.
func mannWhitney(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds
	return benchmath.AssumeNothing.Compare(
		&benchmath.Sample{Values: a, Thresholds: &thresholds},
		&benchmath.Sample{Values: b, Thresholds: &thresholds}).P
}

// newComparison returns a comparison in which only the counts are known.
func newComparison(a, b []float64, better Direction) Comparison {
	nan := math.NaN()
	c := Comparison{
		N: min(len(a), len(b)), Better: better, Verdict: TooFew,
		Ratio: nan, P: nan, Adjusted: nan, MinP: nan, LogSE: nan, Detectable: math.Inf(1),
	}
	if !positive(a) || !positive(b) {
		c.Verdict = NotComparable
	}
	return c
}

// pair returns the medians of the blocks that are in both, in the order of the blocks.
func pair(baseline, other []Sample) (a, b []float64) {
	blocksA, blocksB := byBlock(baseline), byBlock(other)
	var common []int
	for block := range blocksA {
		if _, both := blocksB[block]; both {
			common = append(common, block)
		}
	}
	slices.Sort(common)
	for _, block := range common {
		a = append(a, Median(blocksA[block]))
		b = append(b, Median(blocksB[block]))
	}
	return a, b
}

func byBlock(samples []Sample) map[int][]float64 {
	blocks := make(map[int][]float64)
	for _, s := range samples {
		blocks[s.Block] = append(blocks[s.Block], s.Value)
	}
	return blocks
}

// Median returns the median of at least one value.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return median(sorted)
}

func logarithms(values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return logs
}

// positive reports whether all values are finite and above zero.
func positive(values []float64) bool {
	return allFinite(values) && !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 })
}
