package stats

import "slices"

// StopRule decides when a benchmark has enough blocks: after Min blocks, or, with a Precision, as soon as all its
// medians are precise, but after Max blocks at the latest. A Max below Min has no effect.
type StopRule struct {
	Min, Max int
	// Precision is the largest half-width of each median's interval, as a share of the median: 0.02 is ± 2 %. At 0
	// the rule stops after Min blocks.
	Precision float64
}

// stopInterval is the least number of blocks between two checks of the precision. A rule that stops at the first narrow
// interval favours intervals that are narrow by chance. At a precision of 2 %, with a check after every block from
// the tenth on, the interval at the stop covers the median in 93–95 % of simulated runs; with a check after every fifth
// block it covers the median in 94–95 %.
const stopInterval = 5

// stopShare is the reciprocal of the interval between two checks as a share of the blocks. A check sorts all values, so checks after every fifth block would take a
// time that grows like the square of the blocks. With this share a run has at most a twentieth of its blocks too many.
const stopShare = 20

// checks reports whether the rule checks the precision after n blocks.
func (r StopRule) checks(n int) bool {
	count := r.Min
	for count < n {
		count += max(stopInterval, count/stopShare)
	}
	return count == n
}

// Enough reports whether a benchmark needs no block after its first n. series returns the values of these blocks in the order of the blocks, one
// series for each metric on each target. Enough checks the precision, and calls series, only after Min blocks,
// after every fifth block from there, and from 100 blocks on whenever a twentieth more is measured. The caller keeps a true result for greater n.
func (r StopRule) Enough(n int, series func() [][]float64) bool {
	switch {
	case n < r.Min:
		return false
	case r.Precision == 0 || n >= r.Max:
		return true
	case !r.checks(n):
		return false
	}
	return !slices.ContainsFunc(series(), func(values []float64) bool { return !precise(values, r.Precision) })
}

// precise reports whether the interval of the median of values is at most ± precision wide. It is false
// below MinSamples.
func precise(values []float64, precision float64) bool {
	if len(values) < MinSamples || !allFinite(values) {
		return false
	}
	sorted := Sorted(values)
	return relativeHalfWidth(median(sorted), *medianInterval(sorted, medianInflation(values))) <= precision
}
