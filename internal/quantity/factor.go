package quantity

import (
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Factor spells the difference between a target and its baseline in a sentence: the ratio as a factor of at least 1 in the direction of
// the difference, such as "152 × slower" for 152 times the time or 1/152 of the rate. A factor that rounds to 1 has no
// direction: "1.00 ×". Tables have a [Cost].
func Factor(ratio float64, m result.Metric) string {
	if !finite(ratio) || ratio <= 0 {
		return None
	}
	factor := max(ratio, 1/ratio)
	if factor < 1.0005 {
		return "1.00 ×"
	}
	return FactorNumber(factor) + " × " + factorWord(ratio, m)
}

// factorWord is the word for values that are ratio times the baseline's.
func factorWord(ratio float64, m result.Metric) string {
	if (ratio > 1) == (m.Better == result.Higher) {
		return VerdictWord(stats.Faster, m)
	}
	return VerdictWord(stats.Slower, m)
}

// FactorInterval spells the interval of [Ratio]. For a factor it has the direction of the ratio itself: "149 to 155". Its lower end
// is below 1 if the interval includes the other direction.
func FactorInterval(c *stats.Comparison) string {
	if c.CI == nil {
		return None
	}
	lo, hi := c.CI.Lo, c.CI.Hi
	if c.Ratio < 1 && c.Directed() {
		lo, hi = 1/hi, 1/lo
	}
	return FactorNumber(lo) + " to " + FactorNumber(hi)
}

// FactorNumber spells a factor. It has one decimal more just above 1, as numbers just below 1 have: a difference must not read as none.
func FactorNumber(factor float64) string {
	if factor >= 1 && factor < 1.005 {
		return strconv.FormatFloat(factor, 'f', 3, 64)
	}
	return Number(factor)
}

// PreciseRatio spells a ratio with four decimals: in a comparison of builds a difference of one per cent matters.
func PreciseRatio(ratio float64) string {
	if ratio >= 1e6 || ratio < 1e-4 {
		return strconv.FormatFloat(ratio, 'g', 5, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 4, 64)
}

// Change spells a ratio as a change of the value: "+4.8 %", or "2.31 ×" from a factor of 2 on. It has no direction of better or worse.
func Change(ratio float64) string { return ChangeBeside(nil, ratio) }

// ChangeBeside spells a ratio as [Change] does, in the unit of the interval beside it if there is one.
func ChangeBeside(ci *stats.Interval, ratio float64) string {
	isLarge := large(ratio)
	if ci != nil {
		isLarge = large(ci.Lo) || large(ci.Hi)
	}
	switch {
	case !finite(ratio):
		return None
	case isLarge:
		return Number(ratio) + " ×"
	}
	return percentage(ratio) + " %"
}

// ChangeInterval spells an interval as [Change] does: "+1.2 to +8.6 %". It is [None] without one.
func ChangeInterval(ci *stats.Interval) string {
	switch {
	case ci == nil:
		return None
	case large(ci.Lo) || large(ci.Hi):
		return Number(ci.Lo) + " to " + Number(ci.Hi) + " ×"
	}
	return percentage(ci.Lo) + " to " + percentage(ci.Hi) + " %"
}

func large(ratio float64) bool { return ratio >= 2 || ratio <= 0.5 }

// percentage spells a ratio with a sign and one decimal, which is a true minus sign.
func percentage(ratio float64) string {
	text := strconv.FormatFloat(100*(ratio-1), 'f', 1, 64)
	switch {
	case text == "0.0" || text == "-0.0":
		return "0.0"
	case text[0] == '-':
		return "−" + text[1:]
	}
	return "+" + text
}
