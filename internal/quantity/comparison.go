package quantity

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Ratio spells the ratio of a comparison as [Factor] does, or without a direction: "ratio 152".
func Ratio(c *stats.Comparison, m result.Metric) string {
	if !c.Directed() && finite(c.Ratio) && c.Ratio > 0 {
		return "ratio " + FactorNumber(c.Ratio)
	}
	return Factor(c.Ratio, m)
}

// AddBaseline adds the baseline, if there is one, to the text of [Factor]. A factor that rounds to 1 has no word to compare with.
func AddBaseline(factor, baseline string) string {
	switch {
	case baseline == "":
		return factor
	case strings.HasSuffix(factor, "×"):
		return factor + " that of " + baseline
	}
	return factor + " than " + baseline
}

// DecidingPart is the part that decides a difference, if it is not the typical value: "lowest quarter". For a mixed difference it names all parts with
// their costs. It is empty for other comparisons.
func DecidingPart(c *stats.Comparison, m result.Metric) string {
	if !c.Differs() || c.Verdict == stats.Mixed || c.By == stats.Typical {
		return Parts(c, m, Cost)
	}
	return string(c.By)
}

// AloneMark marks a factor in a table whose difference holds in its metric alone.
const AloneMark = "°"

// Parts names the part that decides a difference, if it is not the typical value: "lowest quarter 1.07 ×" with [Cost] as spell, or "lowest quarter 1.07 × slower"
// with [Factor]. It names all parts of a mixed difference. It is empty for other comparisons.
func Parts(c *stats.Comparison, m result.Metric, spell func(ratio float64, m result.Metric) string) string {
	if !c.Differs() || c.By == stats.Typical && c.Verdict != stats.Mixed {
		return ""
	}
	var texts []string
	for _, d := range c.Parts {
		if d.Part == c.By || c.Verdict == stats.Mixed && d.Adjusted < stats.Alpha {
			texts = append(texts, string(d.Part)+" "+spell(d.Ratio, m))
		}
	}
	return strings.Join(texts, ", ")
}

// Shift spells the shift function of a comparison with values in two groups on one side: "costs of the deciles 1.07, 1.06, …, 1.00". It is empty for others,
// which a typical ratio describes well.
func Shift(c *stats.Comparison, m result.Metric, sides ...*stats.Summary) string {
	two := slices.ContainsFunc(sides, func(s *stats.Summary) bool {
		return s != nil && slices.ContainsFunc(s.Warnings, func(w stats.Warning) bool { return w.Kind == stats.Bimodal })
	})
	if c == nil || c.Shift == nil || !two {
		return ""
	}
	var texts []string
	for _, r := range c.Shift {
		texts = append(texts, FactorNumber(m.Cost(r)))
	}
	return "costs of the deciles " + strings.Join(texts, ", ")
}

// mostShift limits the quotient of the largest and the smallest ratio of a decile. Up to this limit a typical ratio describes all deciles.
const mostShift = 1.25

// Details spell what the typical ratio of a comparison leaves out: the ratio of the means if its interval excludes the typical ratio, and the shift function of values
// in two groups if its ratios vary by more than a quarter. It is empty if there is neither.
func Details(c *stats.Comparison, m result.Metric, sides ...*stats.Summary) string {
	if c == nil || !c.Directed() {
		return ""
	}
	var texts []string
	if ci := c.MeansCI; ci != nil && (c.Ratio < ci.Lo || c.Ratio > ci.Hi) {
		texts = append(texts, "mean "+MeansCost(c, m))
	}
	if shift := Shift(c, m, sides...); shift != "" && slices.Max(c.Shift) > mostShift*slices.Min(c.Shift) {
		texts = append(texts, shift)
	}
	return strings.Join(texts, "; ")
}

// Tier marks a difference that holds in its metric alone, and not over all comparisons of the run. It is empty for other comparisons.
func Tier(c *stats.Comparison) string {
	if c.Differs() && !c.Everywhere {
		return "this metric alone"
	}
	return ""
}
