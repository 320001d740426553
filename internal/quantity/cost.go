package quantity

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Cost spells a ratio of values as a cost: "152 ×" for 152 times the time or 1/152 of the rate, "0.500 ×" for half the time. All costs have one direction, so
// a reader can compare the costs and the intervals of a row or a column.
func Cost(ratio float64, m result.Metric) string {
	cost := m.Cost(ratio)
	if !finite(cost) || cost <= 0 {
		return None
	}
	return FactorNumber(cost) + " ×"
}

// CostInterval spells an interval of ratios as costs: "149 to 155".
func CostInterval(ci *stats.Interval, m result.Metric) string {
	if ci == nil {
		return None
	}
	lo, hi := m.Cost(ci.Lo), m.Cost(ci.Hi)
	return FactorNumber(min(lo, hi)) + " to " + FactorNumber(max(lo, hi))
}

// DecidingCost is the cost in the part that decides a difference, with the word of the difference: "1.07 ×, slower". A typical cost without a shown difference
// has no word, and a difference in both directions has none.
func DecidingCost(c *stats.Comparison, m result.Metric) string {
	if !c.Differs() || c.Verdict == stats.Mixed {
		return Cost(c.Ratio, m)
	}
	return Cost(c.DecidingRatio(), m) + ", " + CostWord(c.Verdict, m)
}

// CostWord is the word of a verdict beside a cost: [VerdictWord], apart from "less" for a larger cost.
func CostWord(v stats.Verdict, m result.Metric) string {
	if VerdictWord(stats.Faster, m) == "more" {
		m.Unit = result.Score
	}
	return VerdictWord(v, m)
}

// MeansCost spells the cost by the means with its interval: "1.08 × (1.02 to 1.15)".
func MeansCost(c *stats.Comparison, m result.Metric) string {
	text := Cost(c.Means, m)
	if text == None || c.MeansCI == nil {
		return text
	}
	return text + " (" + CostInterval(c.MeansCI, m) + ")"
}
