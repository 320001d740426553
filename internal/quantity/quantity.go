// Package quantity spells numbers for people: values with their units, intervals, factors, shares, p-values, numbers of things, and the words of
// verdicts. All texts, pages and messages about results use it, so a number has one spelling everywhere.
//
// It computes no result. A missing number, NaN and the infinities have the text [None].
package quantity

import (
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// precision is the number of significant digits of a quantity. A median of some tens of trials carries no more.
const precision = 3

// None is the text in the place of a missing number.
const None = "–"

// Text spells a value of a unit with three significant digits: "21.3 ms", "8.10 GB/s".
// It is [None] for NaN and infinities.
func Text(value float64, unit result.Unit) string {
	return ScaleFor(value, unit).Text(value)
}

// Signed spells a value that may be negative as [Text] does, with a true minus sign.
func Signed(value float64, unit result.Unit) string { return TrueMinus(Text(value, unit)) }

// TrueMinus replaces the hyphens of a spelled number by true minus signs.
func TrueMinus(s string) string { return strings.ReplaceAll(s, "-", "−") }

// Range spells a smallest and a largest value: "2.10 to 96.7 MiB", both in the scale of the larger one.
func Range(lo, hi float64, unit result.Unit) string {
	s := ScaleFor(max(math.Abs(lo), math.Abs(hi)), unit)
	return TrueMinus(s.with(s.Number(lo) + " to " + s.Number(hi)))
}

// Extent spells a range like [Range], and one value if both ends have the same text.
func Extent(lo, hi float64, unit result.Unit) string {
	if text := Signed(hi, unit); Signed(lo, unit) == text {
		return text
	}
	return Range(lo, hi, unit)
}

// Percent spells a share with two significant digits: "3.1 %".
func Percent(share float64) string {
	if !finite(share) {
		return None
	}
	return Significant(100*share, 2) + " %"
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
func Number(value float64) string { return Significant(value, precision) }

// Significant spells a number with a number of significant digits.
func Significant(value float64, digits int) string {
	if !finite(value) {
		return None
	}
	if value == 0 {
		return "0"
	}
	number := roundTo(value, digits)
	magnitude := int(math.Floor(math.Log10(math.Abs(number)) + 1e-9))
	if magnitude < -6 || magnitude > 15 {
		return strconv.FormatFloat(number, 'e', digits-1, 64)
	}
	decimals := digits - 1 - magnitude
	if decimals <= 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(number, 'f', decimals, 64)
}

// Odds spells the reciprocal of a probability that is a power of ten: "10⁵".
func Odds(p float64) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	text := "10"
	for _, d := range strconv.Itoa(int(math.Round(-math.Log10(p)))) {
		text += string(digits[d-'0'])
	}
	return text
}

// Megabytes spells a size in units of 10⁶ bytes, as lists of images have them, with a number of decimals.
func Megabytes(size int64, decimals int) string {
	return strconv.FormatFloat(float64(size)/1e6, 'f', decimals, 64)
}

// roundTo rounds to significant digits through the decimal spelling, which is exact.
func roundTo(value float64, digits int) float64 {
	number, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64)
	if err != nil {
		return value // out of range: nothing to round
	}
	return number
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
