package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Digits is the number of significant digits of a quantity. A median of some tens of trials carries no more.
const Digits = 3

// None is the text in the place of a missing number.
const None = "–"

// Scale is a unit with a prefix. Several values can share it.
type Scale struct {
	// Name follows the number, such as "ms". It is empty for a score.
	Name string
	// Unit is the value of one in the scale: 0.001 for ms.
	Unit float64
	// from is the least value, in the scale, that is spelled in it; 1 unless set.
	from float64
	// whole is set if whole numbers have no decimals.
	whole bool
}

// scales are the prefixes of each unit, ascending. Memory has powers of two, like cgroup limits and smaps. Rates have
// powers of ten, like disks and networks. A ratio is a percentage below 10 and a factor from 10 on.
func scales(unit result.Unit) []Scale {
	switch unit {
	case result.Seconds:
		return []Scale{{Name: "ns", Unit: 1e-9}, {Name: "µs", Unit: 1e-6}, {Name: "ms", Unit: 1e-3}, {Name: "s", Unit: 1}}
	case result.Bytes:
		return []Scale{{Name: "B", Unit: 1}, {Name: "KiB", Unit: 1 << 10}, {Name: "MiB", Unit: 1 << 20}, {Name: "GiB", Unit: 1 << 30}, {Name: "TiB", Unit: 1 << 40}}
	case result.BytesPerSecond:
		return []Scale{{Name: "B/s", Unit: 1}, {Name: "kB/s", Unit: 1e3}, {Name: "MB/s", Unit: 1e6}, {Name: "GB/s", Unit: 1e9}, {Name: "TB/s", Unit: 1e12}}
	case result.PerSecond:
		return []Scale{{Name: "/s", Unit: 1}, {Name: "k/s", Unit: 1e3}, {Name: "M/s", Unit: 1e6}, {Name: "G/s", Unit: 1e9}}
	case result.BitsPerSecond:
		return []Scale{{Name: "bit/s", Unit: 1}, {Name: "kbit/s", Unit: 1e3}, {Name: "Mbit/s", Unit: 1e6}, {Name: "Gbit/s", Unit: 1e9}, {Name: "Tbit/s", Unit: 1e12}}
	case result.FlopPerSecond:
		return []Scale{{Name: "FLOP/s", Unit: 1}, {Name: "kFLOP/s", Unit: 1e3}, {Name: "MFLOP/s", Unit: 1e6}, {Name: "GFLOP/s", Unit: 1e9}, {Name: "TFLOP/s", Unit: 1e12}}
	case result.Ratio:
		return []Scale{{Name: "%", Unit: 0.01}, {Name: "×", Unit: 1, from: 10}}
	case result.Joules:
		return []Scale{{Name: "µJ", Unit: 1e-6}, {Name: "mJ", Unit: 1e-3}, {Name: "J", Unit: 1}, {Name: "kJ", Unit: 1e3}}
	case result.ByteSeconds:
		return []Scale{{Name: "B·s", Unit: 1}, {Name: "KiB·s", Unit: 1 << 10}, {Name: "MiB·s", Unit: 1 << 20}, {Name: "GiB·s", Unit: 1 << 30}, {Name: "TiB·s", Unit: 1 << 40}}
	case result.Count:
		return []Scale{{Name: "", Unit: 1, whole: true}}
	case result.Score:
	}
	return []Scale{{Name: "", Unit: 1}}
}

// ScaleFor gives the scale for the shortest number of at least one.
func ScaleFor(value float64, unit result.Unit) Scale {
	all := scales(unit)
	best := all[0]
	for _, s := range all[1:] {
		if math.Abs(roundTo(value/s.Unit, Digits)) < max(1, s.from) {
			break
		}
		best = s
	}
	if value == 0 {
		for _, s := range all {
			if s.Unit == 1 && s.from == 0 {
				return s // 0 s, not 0 ns
			}
		}
	}
	return best
}

// Number spells value in the scale, without the unit.
func (s Scale) Number(value float64) string {
	if s.whole && value == math.Trunc(value) {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return Number(value / s.Unit)
}

// with puts the unit behind a number.
func (s Scale) with(number string) string {
	if s.Name == "" || number == None {
		return number
	}
	if strings.HasPrefix(s.Name, "/") {
		return number + s.Name
	}
	return number + " " + s.Name
}

// Quantity spells a value of a unit with three significant digits: "21.3 ms", "8.10 GB/s".
// It is [None] for NaN and infinities.
func Quantity(value float64, unit result.Unit) string {
	s := ScaleFor(value, unit)
	return s.with(s.Number(value))
}

// Tick spells a value of an axis in the scale, without zeros at the end: "20 ms".
func (s Scale) Tick(value float64) string {
	return s.with(strconv.FormatFloat(roundTo(value/s.Unit, Digits), 'f', -1, 64))
}

// Median spells the median of s with the larger half of its interval: "21.3 ± 0.42 ms". The intervals are not symmetric;
// the larger half is the cautious choice and takes less room than both. Without an interval it is the median alone.
func Median(s *stats.Summary, unit result.Unit) string {
	if s == nil {
		return None
	}
	if s.CI == nil {
		return Quantity(s.Median, unit)
	}
	return plusMinus(s.Median, s.CI, ScaleFor(s.Median, unit))
}

func plusMinus(median float64, ci *stats.Interval, scale Scale) string {
	half := max(ci.Hi-median, median-ci.Lo) / scale.Unit
	return scale.with(scale.Number(median) + " ± " + significant(half, 2))
}

// Difference spells a difference as [Median] spells a median, with a true minus sign: "24.7 ±
// 0.81 ms", "−1.20 ± 0.33 ms".
func Difference(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return Signed(d.Median, unit)
	}
	return signed(plusMinus(d.Median, d.CI, differenceScale(d, unit)))
}

// DifferenceInterval spells the interval of a difference: "−0.120 to 0.340 ms".
func DifferenceInterval(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return None
	}
	scale := differenceScale(d, unit)
	return signed(scale.with(scale.Number(d.CI.Lo) + " to " + scale.Number(d.CI.Hi)))
}

// differenceScale is the scale of the interval, because a difference near 0 has no size of its own.
func differenceScale(d stats.Difference, unit result.Unit) Scale {
	return ScaleFor(max(math.Abs(d.CI.Lo), math.Abs(d.CI.Hi)), unit)
}

// Signed spells a value that may be negative as [Quantity] does, with a true minus sign.
func Signed(value float64, unit result.Unit) string { return signed(Quantity(value, unit)) }

func signed(s string) string { return strings.ReplaceAll(s, "-", "−") }

// Range spells a smallest and a largest value: "2.10 to 96.7 MiB", both in the scale of the larger one.
func Range(lo, hi float64, unit result.Unit) string {
	s := ScaleFor(max(math.Abs(lo), math.Abs(hi)), unit)
	return signed(s.with(s.Number(lo) + " to " + s.Number(hi)))
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

// Factor spells the difference between a target and its baseline: the ratio as a factor of at least 1 in the direction of
// the difference, such as "152 × slower" for 152 times the time or 1/152 of the rate. A factor that rounds to 1 has no
// direction: "1.00 ×".
func Factor(ratio float64, m result.Metric) string {
	if !finite(ratio) || ratio <= 0 {
		return None
	}
	factor := max(ratio, 1/ratio)
	if factor < 1.0005 {
		return "1.00 ×"
	}
	return factorNumber(factor) + " × " + factorWord(ratio, m)
}

// factorWord is the word for values that are ratio times the baseline's.
func factorWord(ratio float64, m result.Metric) string {
	if (ratio > 1) == (m.Better == result.Higher) {
		return VerdictWord(stats.Faster, m)
	}
	return VerdictWord(stats.Slower, m)
}

// MeansFactor spells the ratio of the means with its interval: "1.08 × slower (1.02 to 1.15)".
func MeansFactor(c *stats.Comparison, m result.Metric) string {
	if !finite(c.Means) || undirected(c) {
		return None
	}
	text := Factor(c.Means, m)
	if c.MeansCI == nil {
		return text
	}
	lo, hi := c.MeansCI.Lo, c.MeansCI.Hi
	if c.Means < 1 {
		lo, hi = 1/hi, 1/lo
	}
	return text + " (" + factorNumber(lo) + " to " + factorNumber(hi) + ")"
}

// FactorInterval spells the interval of [FactorOf]. For a factor it has the direction of the ratio itself: "149 to 155". Its lower end
// is below 1 if the interval includes the other direction.
func FactorInterval(c *stats.Comparison) string {
	if c.CI == nil {
		return None
	}
	lo, hi := c.CI.Lo, c.CI.Hi
	if c.Ratio < 1 && !undirected(c) {
		lo, hi = 1/hi, 1/lo
	}
	return factorNumber(lo) + " to " + factorNumber(hi)
}

// factorNumber has one decimal more just above 1, as numbers just below 1 have: a difference must not read as none.
func factorNumber(factor float64) string {
	if factor >= 1 && factor < 1.005 {
		return strconv.FormatFloat(factor, 'f', 3, 64)
	}
	return Number(factor)
}

// Percent spells a share with two significant digits: "3.1 %".
func Percent(share float64) string {
	if !finite(share) {
		return None
	}
	return significant(100*share, 2) + " %"
}

// PValue spells a p-value. All values below 0.001 have the same text.
func PValue(p float64) string {
	switch {
	case !finite(p):
		return None
	case p < 0.001:
		return "< 0.001"
	default:
		return strconv.FormatFloat(p, 'f', 3, 64)
	}
}

// Number spells a number with three significant digits and all digits before the point: 12345 stays 12345. Only numbers
// outside of the range of benchmarks have an exponent.
func Number(value float64) string { return significant(value, Digits) }

func significant(value float64, digits int) string {
	if !finite(value) {
		return None
	}
	if value == 0 {
		return "0"
	}
	rounded := roundTo(value, digits)
	magnitude := int(math.Floor(math.Log10(math.Abs(rounded)) + 1e-9))
	if magnitude < -6 || magnitude > 15 {
		return strconv.FormatFloat(rounded, 'e', digits-1, 64)
	}
	decimals := digits - 1 - magnitude
	if decimals <= 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(rounded, 'f', decimals, 64)
}

// roundTo rounds to significant digits through the decimal spelling, which is exact.
func roundTo(value float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64)
	if err != nil {
		return value // out of range: nothing to round
	}
	return rounded
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// digestShown is the length of a digest in texts, enough to be unique in practice. JSON has the whole digest.
const digestShown = len("sha256:") + 12

// ImageText spells an image of a run with its digest and size, or with the reason why it was not available.
func ImageText(i result.Image) string {
	if i.Unavailable != "" {
		return i.Name + ": not available: " + i.Unavailable
	}
	text := fmt.Sprintf("%s: %s, %s", i.Name, i.Digest[:min(len(i.Digest), digestShown)], Quantity(float64(i.Size), result.Bytes))
	if i.UpdatedList {
		text += ", from an updated list of packages"
	}
	return text
}

// StatusWord spells the status of a trial.
func StatusWord(s result.Status) string {
	if s == result.Timeout {
		return "timed out"
	}
	return string(s)
}

// VerdictWord spells a verdict for a metric: less time or a higher rate is faster, fewer bytes or less CPU time are less, a
// higher score is better.
func VerdictWord(v stats.Verdict, m result.Metric) string {
	lower := m.Better == result.Lower
	better, worse := "more", "less"
	if lower {
		better, worse = worse, better
	}
	switch m.Unit {
	case result.Score, result.Ratio:
		better, worse = "better", "worse"
	case result.Seconds:
		if lower && !m.Consumed {
			better, worse = "faster", "slower"
		}
	case result.BytesPerSecond, result.BitsPerSecond, result.PerSecond, result.FlopPerSecond:
		if !lower {
			better, worse = "faster", "slower"
		}
	case result.Bytes, result.Joules, result.Count, result.ByteSeconds:
	}
	switch v {
	case stats.Faster:
		return better
	case stats.Slower:
		return worse
	case stats.TooFew:
		return "too few" // short, because it is in every cell of a short run
	case stats.NoDifference, stats.TooNoisy, stats.NotComparable, stats.TrialsLost, stats.Mixed, stats.Negligible:
	}
	return string(v)
}

// Shown reports whether the verdict is a difference.
func Shown(c *stats.Comparison) bool { return c != nil && c.Differs() }

// DecidingRatio is the ratio of the part that decides a difference, and the ratio of the typical value for other comparisons.
func DecidingRatio(c *stats.Comparison) float64 {
	for _, d := range c.Parts {
		if d.Part == c.By {
			return d.Ratio
		}
	}
	return c.Ratio
}

// ShownFactor is the factor of a difference in the part that decides it, in the direction of the verdict, and [FactorOf] for other comparisons.
func ShownFactor(c *stats.Comparison, m result.Metric) string {
	if !Shown(c) || c.Verdict == stats.Mixed {
		return FactorOf(c, m)
	}
	return Factor(DecidingRatio(c), m)
}

// ShownPart is the part that decides a difference, if it is not the typical value: "lowest quarter". For a mixed difference it names all parts with
// their factors. It is empty for other comparisons.
func ShownPart(c *stats.Comparison, m result.Metric) string {
	if !Shown(c) || c.Verdict == stats.Mixed || c.By == stats.Typical {
		return PartOf(c, m)
	}
	return string(c.By)
}

// AloneMark marks a factor in a table whose difference holds in its metric alone.
const AloneMark = "°"

// PartOf names the part that decides a difference, if it is not the typical value: "lowest quarter 1.07 × slower". It names all parts of a mixed difference. It
// is empty for other comparisons.
func PartOf(c *stats.Comparison, m result.Metric) string {
	if !Shown(c) || c.By == stats.Typical && c.Verdict != stats.Mixed {
		return ""
	}
	var all []string
	for _, d := range c.Parts {
		if d.Part == c.By || c.Verdict == stats.Mixed && d.Adjusted < stats.Alpha {
			all = append(all, string(d.Part)+" "+Factor(d.Ratio, m))
		}
	}
	return strings.Join(all, ", ")
}

// ShiftText spells the shift function of a comparison with values in two groups on one side: "ratios of the deciles 1.07, 1.06, …, 1.00". It is empty for others,
// which a typical ratio describes well.
func ShiftText(c *stats.Comparison, sides ...*stats.Summary) string {
	two := slices.ContainsFunc(sides, func(s *stats.Summary) bool {
		return s != nil && slices.ContainsFunc(s.Warnings, func(w stats.Warning) bool { return w.Kind == stats.Bimodal })
	})
	if c == nil || c.Shift == nil || !two {
		return ""
	}
	var all []string
	for _, r := range c.Shift {
		all = append(all, Number(r))
	}
	return "ratios of the deciles " + strings.Join(all, ", ")
}

// mostShift limits the quotient of the largest and the smallest ratio of a decile. Up to this limit a typical ratio describes all deciles.
const mostShift = 1.25

// BesideText spells what the typical ratio of a comparison leaves out: the ratio of the means if its interval excludes the typical ratio, and the shift function of values
// in two groups if its ratios vary by more than a quarter. It is empty if there is neither.
func BesideText(c *stats.Comparison, m result.Metric, sides ...*stats.Summary) string {
	if c == nil || undirected(c) {
		return ""
	}
	var all []string
	if ci := c.MeansCI; ci != nil && (c.Ratio < ci.Lo || c.Ratio > ci.Hi) {
		all = append(all, "mean "+MeansFactor(c, m))
	}
	if shift := ShiftText(c, sides...); shift != "" && slices.Max(c.Shift) > mostShift*slices.Min(c.Shift) {
		all = append(all, shift)
	}
	return strings.Join(all, "; ")
}

// AloneText marks a difference that holds in its metric alone, and not over all comparisons of the run. It is empty for other comparisons.
func AloneText(c *stats.Comparison) string {
	if Shown(c) && !c.Everywhere {
		return "this metric alone"
	}
	return ""
}
