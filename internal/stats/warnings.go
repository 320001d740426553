package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// negligible is the relative size below which drift, a distance between modes or an outlier has
// no warning. It is the usual precision of the stop rule.
const negligible = 0.02

// The levels of three of the tests; dependenceLevel is another. Together they warn about at most one in twenty series of
// independent values with one mode and a tail that is not heavier than exponential, at any
// number of samples.
const (
	driftLevel   = 0.01
	bimodalLevel = 0.02
	outlierLevel = 0.02
)

// warnings checks values, in the order of measurement, for properties that the median and its
// interval hide.
func warnings(values []float64) []Warning {
	sorted, ranks := sortedWithRanks(values)
	return rankedWarnings(values, ranks, sorted)
}

// rankedWarnings is warnings for values with their ranks, and in ascending order.
func rankedWarnings(values, ranks, sorted []float64) []Warning {
	if len(values) < MinSamples {
		return []Warning{{
			Kind:    FewSamples,
			Message: fmt.Sprintf("%d of the %d samples that an interval needs", len(values), MinSamples),
			Advice:  "run more blocks",
		}}
	}
	if !allFinite(values) {
		return nil
	}
	// The rule for outliers assumes one mode: values of a second mode are not outliers.
	modes := bimodality(sorted)
	if modes == nil {
		modes = outlying(sorted)
	}
	return slices.Concat(inTime(values, ranks, sorted), modes)
}

// inTime finds values that depend on the time or on the values before. Values that drift also depend on each other, so one warning is enough.
func inTime(values, ranks, sorted []float64) []Warning {
	if found := drift(values, ranks, sorted); found != nil {
		return found
	}
	if !dependentRanks(ranks) || relativeHalfWidth(median(sorted), Interval{sorted[0], sorted[len(sorted)-1]}) < negligible {
		return nil
	}
	return []Warning{{
		Kind:    Dependence,
		Message: fmt.Sprintf("values depend on the ones before; the rank correlation of neighbours is %.2f", autocorrelation(ranks, 1)),
		Advice:  "the interval of the median is wider for it; look for moods of the host or of a daemon, and compare within blocks",
	}}
}

// drift finds values that rise or fall over the run: Spearman's rank correlation with
// the order is significant, and the medians of the first and the last third differ.
func drift(values, ranks, sorted []float64) []Warning {
	n := len(values)
	sequence := make([]float64, n)
	for i := range sequence {
		sequence[i] = float64(i)
	}
	// All equal: the correlation is 0/0, which compares as false below.
	rho := stat.Correlation(ranks, sequence, nil)
	t := rho * math.Sqrt(float64(n-2)/max(0, 1-rho*rho))
	limit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 2)}.Quantile(1 - driftLevel/2)
	first, last := Median(values[:n/3]), Median(values[n-n/3:])
	change := (last - first) / math.Abs(median(sorted))
	if !(math.Abs(t) > limit) || !notable(change) {
		return nil
	}
	size := percent(change) + " of the median"
	if share := (last - first) / math.Abs(first); first*last > 0 && !math.IsInf(share, 0) { // a share of the first third: no fall exceeds 100 %
		size = percent(share)
	}
	direction := "rise"
	if change < 0 {
		direction = "fall"
	}
	return []Warning{{
		Kind:    Drift,
		Message: fmt.Sprintf("values %s by %s from the first to the last third of the run", direction, size),
		Advice:  "compare within blocks, not across runs; add warm-up blocks, and look for a host that heats up, fills up or is shared",
	}}
}

// bimodality finds values in two groups by Hartigan's dip test.
func bimodality(sorted []float64) []Warning {
	if !(dip(unrounded(sorted)) > dipLimit(len(sorted))) {
		return nil
	}
	index := split(sorted)
	lower, upper := median(sorted[:index]), median(sorted[index:])
	if !(upper-lower >= negligible*math.Abs(median(sorted))) {
		return nil
	}
	message := fmt.Sprintf("values lie in two groups, of %d and %d", index, len(sorted)-index)
	if times := upper / lower; lower > 0 && !math.IsInf(times, 0) {
		message += fmt.Sprintf("; the second's median is %.3g times the first's", times)
	}
	return []Warning{{
		Kind:    Bimodal,
		Message: message,
		Advice:  "read the distribution and not the median, which may jump from one group to the other; look for two paths: cache hit or miss, two kinds of core, a frequency step",
	}}
}

// split divides sorted into the two groups with the least variance within, and returns the
// number of values in the lower group. The least variance within is the greatest variance between.
func split(sorted []float64) int {
	n := float64(len(sorted))
	centre := stat.Mean(sorted, nil)
	best, index := math.Inf(-1), 1
	var deviation float64 // sum of the lower group's deviations; the upper's is its negative
	for i, v := range sorted[:len(sorted)-1] {
		deviation += v - centre
		k := float64(i + 1)
		if variance := deviation * deviation * n / (k * (n - k)); variance > best {
			best, index = variance, i+1
		}
	}
	return index
}

// outlying counts values that are too far from the median for noise with one mode.
//
// Distance is the modified z-score |x − median| / (1.4826 · MAD) of B. Iglewicz and
// D. Hoaglin, "How to Detect and Handle Outliers" (1993). Their fixed limit of 3.5 is for
// one normal sample. It finds an outlier in 12 % of normal series of 10 values, in 38 % of
// normal series of 1000 values, and in most series of running times, which have a floor and a
// tail. So the limit here depends on n and fits an exponential tail. If all values are
// positive, an outlier must also be an outlier among the logarithms.
func outlying(sorted []float64) []Warning {
	flags := outliers(sorted)
	if sorted[0] > 0 {
		for i, isFar := range outliers(logarithms(sorted)) {
			flags[i] = flags[i] && isFar
		}
	}
	centre := median(sorted)
	var count int
	var farthest float64
	for i, v := range sorted {
		distance := (v - centre) / math.Abs(centre)
		if flags[i] && notable(distance) {
			count++
			if math.Abs(distance) > math.Abs(farthest) {
				farthest = distance
			}
		}
	}
	if count == 0 {
		return nil
	}
	side := "above"
	if farthest < 0 {
		side = "below"
	}
	return []Warning{{
		Kind:    Outliers,
		Message: fmt.Sprintf("%d of %d values lie far from the rest, one of them %s %s the median", count, len(sorted), percent(farthest), side),
		Advice:  "median and interval bear it, mean and standard deviation do not; see what the host did during those trials",
	}}
}

// outliers marks the values whose modified z-score exceeds the limit. If more than half
// of the values are equal, the MAD is zero, and the mean absolute deviation replaces it
// (Iglewicz and Hoaglin, same source).
func outliers(sorted []float64) []bool {
	centre := median(sorted)
	scale := deviation(sorted, centre) / distuv.UnitNormal.Quantile(0.75)
	if scale == 0 {
		for _, v := range sorted {
			scale += math.Abs(v-centre) / float64(len(sorted))
		}
		scale *= math.Sqrt(math.Pi / 2)
	}
	limit := outlierLimit(len(sorted)) * scale
	flags := make([]bool, len(sorted))
	for i, v := range sorted {
		flags[i] = math.Abs(v-centre) > limit
	}
	return flags
}

// outlierLimit is the modified z-score that the farthest of n exponential values exceeds with
// a probability of outlierLevel. That value is ln(n/level) − ln 2 from the median, and the MAD is
// ln((1+√5)/2). A factor for the spread of the MAD is fitted to simulations.
// It is 18 at n = 6, 14 at 10, 12 at 20 and 14 at 1000.
func outlierLimit(n int) float64 {
	farthest := math.Log(float64(n)/outlierLevel) - math.Ln2
	mad := math.Log(math.Phi)
	return farthest / mad * distuv.UnitNormal.Quantile(0.75) * (1 + 6.5/float64(n-2))
}

// notable reports whether a relative size is worth a warning. With a median of zero the relative
// size is infinite or not a number, and never notable.
func notable(size float64) bool {
	return math.Abs(size) >= negligible && !math.IsInf(size, 0)
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*math.Abs(share)) }
