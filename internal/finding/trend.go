package finding

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// TrendNote spells the knee of a trend, or the limits of the result.
func TrendNote(t *stats.Trend, unit result.Unit) string {
	switch k := t.Knee; {
	case t.N < stats.MinKneePlaces && !t.Shown():
		return fmt.Sprintf("no trend shown; no knee sought below %d places", stats.MinKneePlaces)
	case t.N < stats.MinKneePlaces:
		return fmt.Sprintf("no knee sought below %d places", stats.MinKneePlaces)
	case k == nil && t.Shown():
		return "no knee shown"
	case k == nil:
		return "no trend and no knee shown"
	default:
		return fmt.Sprintf("knee at %.0f (%.0f to %.0f): %s before, %s after",
			k.At, k.Range.Lo, k.Range.Hi, quantity.Signed(k.Before, unit), quantity.Signed(k.After, unit))
	}
}

// TrendLegend explains the trends of a report.
const TrendLegend = "A trend is the median slope between all pairs of places (Theil and Sen) with its 95 % interval. A knee is " +
	"where two lines fit better than one, with at most 5 % false knees. Neither is a verdict. A drift of the host during a trial " +
	"is part of its trend; over several trials it averages out."
