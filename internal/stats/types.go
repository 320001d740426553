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

// Interval is a two-sided 95 % interval.
type Interval struct{ Lo, Hi float64 }

// Summary describes the samples of one metric on one target.
type Summary struct {
	N      int
	Median float64
	// CI is the bootstrap interval of the median, nil below MinSamples.
	CI            *Interval
	Mean, SD      float64 // SD is the sample standard deviation, 0 for one sample
	Min, Max      float64
	MAD           float64 // median absolute deviation from the median, not scaled
	P90, P95, P99 *float64
	Warnings      []Warning
}

// RelativeHalfWidth is half the interval's width as a share of the median: what
// the stop rule compares with the wanted precision. It is +Inf without an interval.
func (s Summary) RelativeHalfWidth() float64 { panic("to be written") }

// Verdict is what a comparison shows.
type Verdict string

// The verdicts there are.
const (
	Faster       Verdict = "faster" // better, whatever the metric's unit
	Slower       Verdict = "slower" // worse
	NoDifference Verdict = "no difference shown"
	TooNoisy     Verdict = "too noisy"
	TooFew       Verdict = "too few samples"
)

// Comparison is a target against the baseline, or one run against another.
type Comparison struct {
	N     int     // pairs (paired) or the smaller of the two counts (unpaired)
	Ratio float64 // median of target over median of baseline
	// CI is the bootstrap interval of Ratio, nil below MinSamples.
	CI *Interval
	// P is the p-value of the permutation test, Adjusted the same after Holm's
	// correction over the family shown. NaN below MinSamples.
	P, Adjusted float64
	Verdict     Verdict
	// Detectable is the smallest relative difference that these samples would
	// have shown with a power of 80 %; +Inf where that is not known.
	Detectable float64
}

// WarningKind is the kind of a warning.
type WarningKind string

// The kinds of warnings.
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
