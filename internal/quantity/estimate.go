package quantity

import (
	"math"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Median spells the median of s with the larger half of its interval: "21.3 ± 0.42 ms". The intervals are not symmetric;
// the larger half is the cautious choice and takes less room than both. Without an interval it is the median alone.
func Median(s *stats.Summary, unit result.Unit) string {
	if s == nil {
		return None
	}
	if s.CI == nil {
		return Text(s.Median, unit)
	}
	return plusMinus(s.Median, s.CI, ScaleFor(s.Median, unit))
}

func plusMinus(median float64, ci *stats.Interval, scale Scale) string {
	half := max(ci.Hi-median, median-ci.Lo) / scale.Unit
	return scale.with(scale.Number(median) + " ± " + Significant(half, 2))
}

// Difference spells a difference as [Median] spells a median, with a true minus sign: "24.7 ±
// 0.81 ms", "−1.20 ± 0.33 ms".
func Difference(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return Signed(d.Median, unit)
	}
	return TrueMinus(plusMinus(d.Median, d.CI, differenceScale(d, unit)))
}

// DifferenceInterval spells the interval of a difference: "−0.120 to 0.340 ms".
func DifferenceInterval(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return None
	}
	scale := differenceScale(d, unit)
	return TrueMinus(scale.with(scale.Number(d.CI.Lo) + " to " + scale.Number(d.CI.Hi)))
}

// differenceScale is the scale of the interval, because a difference near 0 has no size of its own.
func differenceScale(d stats.Difference, unit result.Unit) Scale {
	return ScaleFor(max(math.Abs(d.CI.Lo), math.Abs(d.CI.Hi)), unit)
}

// Interval spells the interval of a median: "20.9 to 21.8 ms", both ends in the scale of the median. It is [None] without
// an interval.
func Interval(ci *stats.Interval, median float64, unit result.Unit) string {
	if ci == nil {
		return None
	}
	s := ScaleFor(median, unit)
	return s.with(s.Number(ci.Lo) + " to " + s.Number(ci.Hi))
}

// Slope spells the slope of a trend with its interval: "12.3 ± 0.4 µs".
func Slope(t *stats.Trend, unit result.Unit) string {
	return Difference(stats.Difference{N: t.N, Median: t.Slope, CI: t.CI}, unit)
}
