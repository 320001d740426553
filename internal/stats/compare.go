package stats

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
)

// Compare compares a target with the baseline of the same run, paired by block: the
// host disturbs both in the same way within a block. Only blocks with both count.
// Several samples of a block are first reduced to their median.
//
// Ratio is the estimate of Hodges and Lehmann: the median of the means of all pairs of the blocks' log ratios, as a
// ratio. CI inverts Wilcoxon's signed-rank test, so it excludes 1 if and only if this test alone rejects equality (but
// for ties). Ratio is not the quotient of the two medians. Both estimate the same factor and mostly
// agree, but the quotient makes little use of the pairs. With noise of 2 % per trial,
// blocks that differ by 5 % and a drift of 30 % over 20 blocks, the standard error of the
// quotient is twice as large (TestPairsSharpenTheRatio).
//
// P is the p-value of one permutation test of all parts of the distribution (see [Part]); Parts has the p-value of each. The
// verdict is for a family of one; use [Judge] for comparisons that are
// shown together. Swapping baseline and candidate inverts Ratio and CI and does not change P.
//
// Means is the ratio of the means. The mean also counts the slow trials that a typical value ignores, as the price of CPU time does.
//
// A ratio needs positive values. With a value that is zero, negative or not finite the
// verdict is NotComparable, and all numbers but N are unknown (NaN, Detectable +Inf).
func Compare(baseline, candidate []Sample, direction Direction, seed uint64) Comparison {
	return compare(baseline, candidate, direction, seed, randomSwaps)
}

func compare(baseline, candidate []Sample, direction Direction, seed uint64, mostSwaps int) Comparison {
	c, a, b := estimatePairs(baseline, candidate, direction)
	if c.CI == nil {
		return c
	}
	c.MeansCI, c.Shift = meansInterval(a, b), shiftFunction(a, b)
	c.Dependent = dependent(c.LogRatios)
	c.Seed = seed
	c.test(a, b, exactSwaps, mostSwaps)
	return Judge([]Comparison{c}, Alpha, 0)[0]
}

// Estimate is [Compare] without a test: Ratio with CI and LogSE, and no verdict. It is for a node of a fleet, where the verdict is about all nodes, and takes a
// hundredth of the time.
func Estimate(baseline, candidate []Sample, direction Direction) Comparison {
	c, _, _ := estimatePairs(baseline, candidate, direction)
	return c
}

// estimatePairs sets the ratio, and its interval if the pairs are enough. It returns the pairs too.
func estimatePairs(baseline, candidate []Sample, direction Direction) (c Comparison, a, b []float64) {
	a, b = pair(baseline, candidate)
	c = newComparison(a, b, direction)
	if c.Verdict == NotComparable || c.N == 0 {
		return c, a, b
	}
	// A difference of logarithms changes only its sign if a and b are swapped. The logarithm of the
	// quotient may also change its last bits.
	c.LogRatios = subtracted(logarithms(b), logarithms(a))
	walsh := walshAverages(Sorted(c.LogRatios))
	c.Ratio, c.Means = math.Exp(walsh.median()), meanOf(b)/meanOf(a)
	if c.N >= MinSamples {
		c.estimate(walsh.interval(signedRankCritical(c.N, 1-Level)))
	}
	return c, a, b
}

// LevelOf is the typical value of samples as an effect: the logarithm of the estimate of Hodges and Lehmann, with its standard error. It is NaN
// below MinSamples and for values that are not positive. It is for nodes of one kind, whose values may be compared.
func LevelOf(samples []Sample) Effect {
	ones := make([]Sample, len(samples))
	for i, s := range samples {
		ones[i] = Sample{Block: s.Block, Value: 1}
	}
	c := Estimate(ones, samples, Lower)
	return Effect{Log: math.Log(c.Ratio), SE: c.LogSE}
}

// test sets the p-values from pairs. LogRatios, Ratio and Seed are set before. exact and swaps limit the work of [jointTest], and swaps also limits [linearTest].
func (c *Comparison) test(a, b []float64, exact, swaps int) {
	var t tested
	if c.N > mostSwapped {
		t = linearTest(a, b, swaps)
	} else {
		t = jointTest(newSwapper(a, b), exact, swaps, c.Seed)
	}
	signed := 0
	for _, v := range c.LogRatios {
		if v != 0 {
			signed++
		}
	}
	c.MinP = smallestP(signed)
	c.Parts, c.P = t.differences(c.Ratio, math.Exp(quotients(a, b).median())), 1
	for _, d := range c.Parts {
		c.P = min(c.P, d.P)
	}
}

// CompareUnpaired compares two runs, or other samples without common blocks, as
// independent samples. Ratio is the estimate of Hodges and Lehmann, the median of all quotients of a value of candidate and a value of baseline.
// CI inverts the Mann–Whitney U test, and P is the p-value of that test (by benchmath: exact up
// to 50 values a side, 25 with ties). It has no parts. Swapping the two inverts Ratio and CI and does not change P.
//
// One run does not show the variation between runs: every change of the host between
// two runs is part of their difference.
func CompareUnpaired(baseline, candidate []float64, direction Direction) Comparison {
	c := newComparison(baseline, candidate, direction)
	if c.Verdict == NotComparable || c.N == 0 {
		return c
	}
	q := quotients(baseline, candidate)
	c.Ratio, c.Means = math.Exp(q.median()), meanOf(candidate)/meanOf(baseline)
	if c.N < MinSamples {
		return c
	}
	c.estimate(q.interval(mannWhitneyCritical(len(q.a), len(q.b), 1-Level)))
	c.Shift = shiftFunction(baseline, candidate)
	c.P = mannWhitney(q.a, q.b)
	c.MinP = 2 * math.Exp(-combin.LogGeneralizedBinomial(float64(len(baseline)+len(candidate)), float64(len(baseline))))
	return Judge([]Comparison{c}, Alpha, 0)[0]
}

// quotients are the logarithms of all quotients of a value of b and a value of a.
func quotients(a, b []float64) *shifts {
	return differences(Sorted(logarithms(a)), Sorted(logarithms(b)))
}

// estimate sets the interval and the standard error from the interval of the logarithm.
func (c *Comparison) estimate(log Interval) {
	c.CI = &Interval{math.Exp(log.Lo), math.Exp(log.Hi)}
	c.LogSE = (log.Hi - log.Lo) / 2 / student(c.N).Quantile(0.975)
}

// meansInterval is the interval of the ratio of the means of pairs, by the delta method with Student's quantile: the variance of
// the log of the ratio is the variance of the differences of the relative deviations.
func meansInterval(a, b []float64) *Interval {
	meanA, meanB := meanOf(a), meanOf(b)
	terms := make([]float64, len(a))
	for i := range a {
		terms[i] = b[i]/meanB - a[i]/meanA
	}
	n := len(a)
	half := student(n).Quantile(0.975) * stat.StdDev(terms, nil) / math.Sqrt(float64(n))
	ratio := meanB / meanA
	return &Interval{ratio * math.Exp(-half), ratio * math.Exp(half)}
}

func meanOf(values []float64) float64 { return stat.Mean(values, nil) }

// subtracted is a − b, value by value.
func subtracted(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i, v := range b {
		out[i] -= v
	}
	return out
}

// mannWhitney is the two-sided p-value of the Mann–Whitney U test of sorted values. It is 1
// if all values are equal.
func mannWhitney(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds
	return benchmath.AssumeNothing.Compare(
		&benchmath.Sample{Values: a, Thresholds: &thresholds},
		&benchmath.Sample{Values: b, Thresholds: &thresholds}).P
}

// newComparison returns a comparison with its counts and no estimates.
func newComparison(a, b []float64, direction Direction) Comparison {
	nan := math.NaN()
	c := Comparison{
		N: min(len(a), len(b)), Better: direction, Verdict: TooFew,
		Ratio: nan, Means: nan, P: nan, Adjusted: nan, MinP: nan, LogSE: nan, Detectable: math.Inf(1),
	}
	if !positive(a) || !positive(b) {
		c.Verdict = NotComparable
	}
	return c
}

// pair returns the medians of the blocks that are in both, in the order of the blocks.
func pair(baseline, candidate []Sample) (a, b []float64) {
	x, y := byBlockMedian(baseline), byBlockMedian(candidate)
	n := min(len(x), len(y))
	a, b = make([]float64, 0, n), make([]float64, 0, n)
	for i, k := 0, 0; i < len(x) && k < len(y); {
		switch {
		case x[i].Block < y[k].Block:
			i++
		case x[i].Block > y[k].Block:
			k++
		default:
			a, b = append(a, x[i].Value), append(b, y[k].Value)
			i, k = i+1, k+1
		}
	}
	return a, b
}

// byBlockMedian returns one sample for each block, in the order of the blocks.
func byBlockMedian(samples []Sample) []Sample {
	ascending := true
	for i := 1; i < len(samples) && ascending; i++ {
		ascending = samples[i-1].Block < samples[i].Block
	}
	if ascending {
		return samples
	}
	sorted := slices.Clone(samples)
	slices.SortStableFunc(sorted, func(a, b Sample) int { return cmp.Compare(a.Block, b.Block) })
	var medians []Sample
	for start := 0; start < len(sorted); {
		var values []float64
		end := start
		for ; end < len(sorted) && sorted[end].Block == sorted[start].Block; end++ {
			values = append(values, sorted[end].Value)
		}
		medians = append(medians, Sample{Block: sorted[start].Block, Value: Median(values)})
		start = end
	}
	return medians
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
	return selectMedian(slices.Clone(values))
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
