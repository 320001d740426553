package stats

// Sample is the value of a metric in one trial, with the block it belongs to.
// Samples are passed in the order in which they were taken; no function sorts or
// changes them.
type Sample struct {
	Block int
	Value float64
}

// MinSamples is the least number of samples from which an interval is given:
// below it the order statistics carry no 95 % interval for the median.
const MinSamples = 6

// Resamples is the number of bootstrap resamples.
const Resamples = 10_000

// Alpha is the level of a family of comparisons: the probability that at least
// one of them is called faster or slower though nothing differs.
const Alpha = 0.05

// Power is the probability with which a difference as large as
// [Comparison.Detectable] is found.
const Power = 0.80

// Interval is a two-sided 95 % interval.
type Interval struct{ Lo, Hi float64 }

// Direction tells which values of a metric are the better ones, spelled as
// result.Direction spells it.
type Direction string

// The directions there are.
const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
)

// Summary describes the samples of one metric on one target, in the metric's
// unit. All estimates are NaN if there is no sample or one that is not finite.
type Summary struct {
	N      int
	Median float64
	// CI is the bootstrap interval of the median, nil below MinSamples.
	CI       *Interval
	Mean, SD float64 // SD is the sample standard deviation, 0 for one sample
	Min, Max float64
	MAD      float64 // median absolute deviation from the median, not scaled
	// P90, P95 and P99 are percentiles, each a value that was seen (the inverse of
	// the empirical distribution). Each is nil unless at least two samples lie
	// above it: below 20, 40 and 200 samples. A percentile that only the maximum
	// exceeds is the maximum by another name.
	P90, P95, P99 *float64
	Warnings      []Warning
}

// Verdict is what a comparison shows.
type Verdict string

// The verdicts there are; [Judge] says when each is given.
const (
	Faster        Verdict = "faster" // better, whatever the metric's unit
	Slower        Verdict = "slower" // worse
	NoDifference  Verdict = "no difference shown"
	TooNoisy      Verdict = "too noisy"
	TooFew        Verdict = "too few samples"
	NotComparable Verdict = "not comparable"
)

// Comparison is a target against the baseline, or one run against another.
type Comparison struct {
	N      int       // pairs (paired) or the smaller of the two counts (unpaired)
	Better Direction // which values of the metric are better
	// Ratio of the target to the baseline: the median of the blocks' ratios (paired) or
	// the ratio of the medians (unpaired).
	Ratio float64
	// CI is the bootstrap interval of Ratio, nil below MinSamples.
	CI *Interval
	// P is the p-value of the permutation test, Adjusted the same after Holm's
	// correction over the family shown. NaN below MinSamples.
	P, Adjusted float64
	// MinP is the smallest p-value that so many samples can give, whatever their
	// values: 2/2^N for pairs. NaN where P is.
	MinP    float64
	Verdict Verdict
	LogSE   float64
	// Detectable is the smallest relative difference that these samples would
	// have shown with a power of 80 %, within the family shown: 0.03 is 3 %. It is
	// +Inf where no difference, however large, could have been shown.
	Detectable float64
}

// WarningKind is the kind of a warning.
type WarningKind string

// The kinds of warnings. Disturbed is not found from values: it is for callers
// that know what the host did.
const (
	FewSamples WarningKind = "few-samples"
	Drift      WarningKind = "drift"
	Bimodal    WarningKind = "bimodal"
	Outliers   WarningKind = "outliers"
	Disturbed  WarningKind = "disturbed-host"
)

// Warning says what makes a number less trustworthy, and what to do about it.
type Warning struct {
	Kind    WarningKind
	Message string
	Advice  string
}
