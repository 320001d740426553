package sides

import (
	"fmt"
	"math"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Change spells a ratio as a change of the value: "+4.8 %", or "2.31 ×" from a factor of 2 on. It has no direction of better or worse.
func Change(ratio float64) string {
	switch {
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return quantity.None
	case large(ratio):
		return quantity.Number(ratio) + " ×"
	}
	return percentage(ratio) + " %"
}

// ChangeInterval spells an interval as Change does: "+1.2 to +8.6 %". It is [quantity.None] without one.
func ChangeInterval(ci *stats.Interval) string {
	switch {
	case ci == nil:
		return quantity.None
	case large(ci.Lo) || large(ci.Hi):
		return quantity.Number(ci.Lo) + " to " + quantity.Number(ci.Hi) + " ×"
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

// Summary states the result in a sentence or two.
func (c *Comparison) Summary() string {
	text := counted(len(c.Cells), "metric") + " compared"
	switch {
	case c.Compared == 0:
		text += "; none of them has a test."
	case c.Shown+c.Alone == 0:
		text += "; no difference is shown, which does not prove equality."
	case c.Single:
		text += fmt.Sprintf("; %d differ between these two runs, and the cause may be the runs.", c.Shown+c.Alone)
	default:
		text += fmt.Sprintf("; %d differ over the whole comparison, and %d in their metric alone. Without any difference, about %.1f of %d would differ in their metric alone by chance.",
			c.Shown, c.Alone, stats.Alpha*float64(c.Compared), c.Compared)
	}
	return text
}

// GateSummary states the answer of all gates. It is empty without a gate.
func (c *Comparison) GateSummary() string {
	count := func(a Answer) (n int) {
		for _, k := range c.Gates {
			if k.Answer == a {
				n++
			}
		}
		return n
	}
	failures, open, fine := count(Worse), count(Inconclusive), count(NotWorse)
	gated := counted(len(c.Gates), "gated metric")
	switch c.Outcome() {
	case Worse:
		return fmt.Sprintf("Regression: of %s %d worse than the margin, %d undecided, %d not worse.", gated, failures, open, fine)
	case Inconclusive:
		return fmt.Sprintf("Inconclusive, which is no pass: of %s %d undecided, %d not worse by the margin.", gated, open, fine)
	case NotWorse:
		return fmt.Sprintf("Passed: %s not worse by the margin.", gated)
	}
	return ""
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
