package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Digits is the number of significant digits of a quantity: more than that no median of
// some tens of trials carries.
const Digits = 3

// None stands where there is no number.
const None = "–"

// Scale is a unit with a prefix, in which several values can be shown beside each other.
type Scale struct {
	// Name is what stands after the number, such as "ms"; empty for a score.
	Name   string
	factor float64
	// from is the least value, in the scale, that is written in it; 1 unless set.
	from float64
}

// scales are the prefixes of each unit, ascending. Memory goes by powers of two, as
// cgroup limits and smaps do; rates go by powers of ten, as disks and networks do. A ratio is a
// percentage, as shares and usages are read, until that has more digits than anybody reads at once.
func scales(unit result.Unit) []Scale {
	switch unit {
	case result.Seconds:
		return []Scale{{Name: "ns", factor: 1e-9}, {Name: "µs", factor: 1e-6}, {Name: "ms", factor: 1e-3}, {Name: "s", factor: 1}}
	case result.Bytes:
		return []Scale{{Name: "B", factor: 1}, {Name: "KiB", factor: 1 << 10}, {Name: "MiB", factor: 1 << 20}, {Name: "GiB", factor: 1 << 30}, {Name: "TiB", factor: 1 << 40}}
	case result.BytesPerSecond:
		return []Scale{{Name: "B/s", factor: 1}, {Name: "kB/s", factor: 1e3}, {Name: "MB/s", factor: 1e6}, {Name: "GB/s", factor: 1e9}, {Name: "TB/s", factor: 1e12}}
	case result.PerSecond:
		return []Scale{{Name: "/s", factor: 1}, {Name: "k/s", factor: 1e3}, {Name: "M/s", factor: 1e6}, {Name: "G/s", factor: 1e9}}
	case result.BitsPerSecond:
		return []Scale{{Name: "bit/s", factor: 1}, {Name: "kbit/s", factor: 1e3}, {Name: "Mbit/s", factor: 1e6}, {Name: "Gbit/s", factor: 1e9}, {Name: "Tbit/s", factor: 1e12}}
	case result.FlopPerSecond:
		return []Scale{{Name: "FLOP/s", factor: 1}, {Name: "kFLOP/s", factor: 1e3}, {Name: "MFLOP/s", factor: 1e6}, {Name: "GFLOP/s", factor: 1e9}, {Name: "TFLOP/s", factor: 1e12}}
	case result.Ratio:
		return []Scale{{Name: "%", factor: 0.01}, {Name: "×", factor: 1, from: 10}}
	case result.Score:
	}
	return []Scale{{Name: "", factor: 1}}
}

// ScaleFor gives the scale in which value is written with the shortest number of at least
// one.
func ScaleFor(value float64, unit result.Unit) Scale {
	all := scales(unit)
	best := all[0]
	for _, s := range all[1:] {
		if math.Abs(round(value/s.factor)) < max(1, s.from) {
			break
		}
		best = s
	}
	if value == 0 {
		for _, s := range all {
			if s.factor == 1 && s.from == 0 {
				return s // 0 s, not 0 ns
			}
		}
	}
	return best
}

// Number is value in the scale, without the unit.
func (s Scale) Number(value float64) string { return Number(value / s.factor) }

// Unit is the value that is one in the scale: 0.001 for ms.
func (s Scale) Unit() float64 { return s.factor }

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
// A value that is no number is [None].
func Quantity(value float64, unit result.Unit) string {
	s := ScaleFor(value, unit)
	return s.with(s.Number(value))
}

// Tick spells a value of an axis in the scale, without zeros at the end: "20 ms".
func (s Scale) Tick(value float64) string {
	return s.with(strconv.FormatFloat(round(value/s.factor), 'f', -1, 64))
}

// Median spells the median of s with the larger half of its interval: "21.3 ± 0.42 ms". The
// intervals are not symmetric; the larger half errs on the careful side and takes the place
// of one number. Without an interval it is the median alone.
func Median(s *stats.Summary, unit result.Unit) string {
	if s == nil {
		return None
	}
	if s.CI == nil {
		return Quantity(s.Median, unit)
	}
	scale := ScaleFor(s.Median, unit)
	half := max(s.CI.Hi-s.Median, s.Median-s.CI.Lo) / scale.factor
	return scale.with(scale.Number(s.Median) + " ± " + significant(half, 2))
}

// Difference spells a difference as [Median] spells a median, with a true minus sign: "24.7 ±
// 0.81 ms", "−1.20 ± 0.33 ms".
func Difference(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return Signed(d.Median, unit)
	}
	scale := differenceScale(d, unit)
	half := max(d.CI.Hi-d.Median, d.Median-d.CI.Lo) / scale.factor
	return signed(scale.with(scale.Number(d.Median) + " ± " + significant(half, 2)))
}

// DifferenceInterval spells the interval of a difference: "−0.120 to 0.340 ms".
func DifferenceInterval(d stats.Difference, unit result.Unit) string {
	if d.CI == nil {
		return None
	}
	scale := differenceScale(d, unit)
	return signed(scale.with(scale.Number(d.CI.Lo) + " to " + scale.Number(d.CI.Hi)))
}

// differenceScale is that of the interval: a difference near nothing has no size of its own.
func differenceScale(d stats.Difference, unit result.Unit) Scale {
	return ScaleFor(max(math.Abs(d.CI.Lo), math.Abs(d.CI.Hi)), unit)
}

// Signed spells a value that may be negative as [Quantity] does, with a true minus sign.
func Signed(value float64, unit result.Unit) string { return signed(Quantity(value, unit)) }

func signed(s string) string { return strings.ReplaceAll(s, "-", "−") }

// Interval spells an interval of values: "20.9 to 21.8 ms", both in the scale of the median
// that it belongs to. It is [None] without one.
func Interval(ci *stats.Interval, median float64, unit result.Unit) string {
	if ci == nil {
		return None
	}
	s := ScaleFor(median, unit)
	return s.with(s.Number(ci.Lo) + " to " + s.Number(ci.Hi))
}

// Ratio spells a ratio to the baseline: "× 1.23".
func Ratio(ratio float64) string {
	if !finite(ratio) {
		return None
	}
	return "× " + ratioNumber(ratio)
}

// ratioNumber has one decimal more just above 1, as it has just below: a difference that
// is shown must not read as none.
func ratioNumber(ratio float64) string {
	if ratio >= 1 && ratio < 1.005 {
		return strconv.FormatFloat(ratio, 'f', 3, 64)
	}
	return Number(ratio)
}

// RatioInterval spells the interval of a ratio: "1.20 to 1.27".
func RatioInterval(ci *stats.Interval) string {
	if ci == nil {
		return None
	}
	return ratioNumber(ci.Lo) + " to " + ratioNumber(ci.Hi)
}

// Percent spells a share with two significant digits: "3.1 %".
func Percent(share float64) string {
	if !finite(share) {
		return None
	}
	return significant(100*share, 2) + " %"
}

// PValue spells a p-value; what is below a thousandth is not told apart.
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

// Number spells a number with three significant digits. Digits before the point are all
// shown: 12345 stays 12345. Only what no benchmark measures has an exponent.
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

func round(value float64) float64 { return roundTo(value, Digits) }

// roundTo rounds to significant digits by way of the decimal spelling, which is exact.
func roundTo(value float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64)
	if err != nil {
		return value // out of range: nothing to round
	}
	return rounded
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// digestShown is how much of a digest tells it from all others that a person may meet; JSON has all of it.
const digestShown = len("sha256:") + 12

// ImageText names an image of a run with its digest and size, or with why it could not be had.
func ImageText(i result.Image) string {
	if i.Unavailable != "" {
		return i.Name + ": not available: " + i.Unavailable
	}
	return fmt.Sprintf("%s: %s, %s", i.Name, i.Digest[:min(len(i.Digest), digestShown)], Quantity(float64(i.Size), result.Bytes))
}

// StatusWord is how the end of a trial is shown.
func StatusWord(s result.Status) string {
	if s == result.Timeout {
		return "timed out"
	}
	return string(s)
}

// VerdictWord is how a verdict is shown for values of a unit: less time is faster, fewer
// bytes are lighter, a higher score is better.
func VerdictWord(v stats.Verdict, unit result.Unit) string {
	better, worse := "faster", "slower"
	switch unit {
	case result.Bytes:
		better, worse = "lighter", "heavier"
	case result.Score, result.Ratio:
		better, worse = "better", "worse"
	case result.Seconds, result.BytesPerSecond, result.BitsPerSecond, result.PerSecond, result.FlopPerSecond:
	}
	switch v {
	case stats.Faster:
		return better
	case stats.Slower:
		return worse
	case stats.TooFew:
		return "too few" // stands in every cell of a short run
	case stats.NoDifference, stats.TooNoisy, stats.NotComparable:
	}
	return string(v)
}
