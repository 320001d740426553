package stats

import "math"

// Sample is the value of a metric in one trial, with the trial's block. Callers pass
// samples in the order of measurement.
type Sample struct {
	Block int
	Value float64
}

// MinSamples is the least number of samples for an interval. With fewer samples the
// order statistics do not contain a 95 % interval for the median.
const MinSamples = 6

// Alpha is the level of a family of comparisons: the probability that at least
// one of them is called faster or slower although the targets do not differ.
const Alpha = 0.05

// Power is the probability that a comparison shows a difference as large as
// [Comparison.Detectable].
const Power = 0.80

// Level is the level of all intervals.
const Level = 0.95

// Interval is a two-sided 95 % interval.
type Interval struct{ Lo, Hi float64 }

// Direction is the direction of better values of a metric, with the spelling of
// result.Direction.
type Direction string

// The directions.
const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
)

// Summary describes the samples of one metric on one target, in the metric's
// unit. All estimates are NaN without samples, or with a sample that is not finite.
type Summary struct {
	N      int
	Median float64
	// CI is the bootstrap interval of the median, nil below MinSamples.
	CI       *Interval
	Mean, SD float64 // SD is the sample standard deviation, 0 for one sample
	Min, Max float64
	MAD      float64 // median absolute deviation from the median, not scaled
	// P90, P95 and P99 are percentiles, each equal to a sample (the inverse of
	// the empirical distribution). Each is nil unless at least two samples are
	// greater: below 20, 40 and 200 samples. A percentile that only the maximum
	// exceeds would repeat the maximum.
	P90, P95, P99 *float64
	Warnings      []Warning
}

// Verdict is the result of a comparison: which side is better, or why this is not shown. Reports, comparisons of runs, histories and selfchecks decide
// by it.
type Verdict string

// The verdicts. [Judge] has their conditions.
const (
	Faster        Verdict = "faster" // better, in the direction of the metric
	Slower        Verdict = "slower" // worse
	Mixed         Verdict = "mixed"  // some parts are better and others are worse
	Negligible    Verdict = "too small to matter"
	NoDifference  Verdict = "no difference shown"
	TooNoisy      Verdict = "too noisy"
	TooFew        Verdict = "too few samples"
	NotComparable Verdict = "not comparable"
	TrialsLost    Verdict = "trials lost"
	Withheld      Verdict = "emulated" // no test: the values depend on the speed of an emulated CPU, see [Comparison.Withhold]
)

// MostLost is the largest share of its trials that a side of a comparison may lose and still be called better. Trials are not lost by chance: a
// slow trial exceeds a limit and a fast one does not, so the rest of them looks faster than the target is.
const MostLost = 0.05

// Losses are the trials that the sides of a comparison have lost: they failed, timed out, or were given up.
type Losses struct {
	Baseline, Other             float64 // shares (0–1)
	BaselineBlocks, OtherBlocks int     // blocks that only this side has lost
}

// OfBetter is the share that the better side has lost if it is above [MostLost], and 0 otherwise. Above it the side may only look better.
func (l Losses) OfBetter(isOther bool) float64 {
	share := l.Baseline
	if isOther {
		share = l.Other
	}
	if share <= MostLost {
		return 0
	}
	return share
}

// Comparison is a target against the baseline, or one run against another.
type Comparison struct {
	N      int       // pairs (paired) or the smaller of the two counts (unpaired)
	Lost   Losses    // set by the caller before Judge; zero if no trial is lost
	Better Direction // which values of the metric are better
	// Ratio of the target to the baseline: the estimate of Hodges and Lehmann on the logarithms.
	Ratio float64
	// CI is the interval of Ratio that inverts the rank test, nil below MinSamples.
	CI *Interval
	// Means is the ratio of the means. MeansCI is its interval, nil below MinSamples and without pairs.
	Means   float64
	MeansCI *Interval
	// Shift is the shift function: the ratios of the nine deciles. It is nil below ten values.
	Shift []float64
	// LogRatios are the log ratios of the blocks, in their order. It is nil without pairs.
	LogRatios []float64
	// Parts are the differences of all parts, nil below MinSamples and without pairs.
	Parts []PartDifference
	// P is the p-value of the permutation test. Adjusted is P after Holm's
	// correction over the family. Both are NaN below MinSamples.
	P, Adjusted float64
	// MinP is the smallest p-value that these samples can give: 2/2^N for up to 16 pairs with a difference. Pairs of equal
	// values say nothing. It is NaN if P is NaN.
	MinP    float64
	Verdict Verdict
	// By is the part that decides a shown difference. It is empty for other verdicts.
	By Part
	// Everywhere is set by [JudgeTogether] if the difference is shown over all comparisons of the report, and not only in
	// its family.
	Everywhere bool
	// Dependent is set if the log ratios of the blocks depend on the ones before, so that pairs do not remove a mood of one
	// target, and a false difference is several times more likely than Alpha.
	Dependent bool
	LogSE     float64
	// Detectable is the smallest relative difference that these samples would
	// have shown with a power of 80 %, within the family: 0.03 is 3 %. It is
	// +Inf if these samples cannot show a difference of any size.
	Detectable float64
	Seed       uint64 // of the resampling
	// Look is the look of a rule that decides while the run goes on. P, MinP and the p-values of Parts then hold for all looks of the rule
	// together. It is nil in a run with a fixed number of blocks.
	Look *Look
}

// Differs reports whether the verdict is a difference. It is false for nil.
func (c *Comparison) Differs() bool {
	return c != nil && (c.Verdict == Faster || c.Verdict == Slower || c.Verdict == Mixed)
}

// Directed reports whether the ratio has a direction. A factor "faster" or "slower" is a verdict in itself, so a ratio without a possible verdict has
// none: the CPU is emulated, or trials are lost.
func (c *Comparison) Directed() bool { return c.Verdict != Withheld && c.Verdict != TrialsLost }

// DecidingRatio is the ratio of the part that decides a difference, and the ratio of the typical value for other comparisons.
func (c *Comparison) DecidingRatio() float64 {
	for _, d := range c.Parts {
		if d.Part == c.By {
			return d.Ratio
		}
	}
	return c.Ratio
}

// Withhold removes the verdict and the test behind it. The ratio and its interval stay. A comparison that has no ratio stays as it is.
func (c Comparison) Withhold() Comparison {
	if c.Verdict == NotComparable {
		return c
	}
	c.Verdict, c.P, c.Adjusted, c.MinP, c.Detectable = Withheld, math.NaN(), math.NaN(), math.NaN(), math.Inf(1)
	c.Parts, c.By = nil, ""
	return c
}

// WarningKind is the kind of a warning.
type WarningKind string

// The kinds of warnings.
const (
	FewSamples WarningKind = "few-samples"
	Drift      WarningKind = "drift"
	Bimodal    WarningKind = "bimodal"
	Outliers   WarningKind = "outliers"
	Dependence WarningKind = "dependence"
)

// Warning is a reason to trust a number less, with advice.
type Warning struct {
	Kind    WarningKind `json:"kind" doc:"Kind of the warning."`
	Message string      `json:"message" doc:"The observation."`
	Advice  string      `json:"advice" doc:"The remedy."`
}
