package html

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// statistics is the table of all statistics of a benchmark's metrics.
type statistics struct {
	Percentiles []string
	Overhead    bool
	Groups      []statisticsGroup
}

type statisticsGroup struct {
	Metric, Help, Derived string
	Rows                  []statisticsRow
}

type statisticsRow struct {
	Target   string
	Reason   string
	Baseline bool
	// Alarm describes a breach.
	Alarm string
	// Headline is n, the median, its interval, the factor and its interval.
	Headline []string
	Verdict  string
	Class    string
	// Warnings are beside the verdict, by their kinds.
	Warnings []stats.Warning
	// Rest is the overhead if any cell has one, adjusted p, the smallest detectable difference, the mean, sd, min, max, MAD and
	// the percentiles.
	Rest  []string
	Shift string // the shift function of values in two groups
}

// Columns counts the columns behind the target.
func (s *statistics) Columns() int {
	n := 8 + len(s.Percentiles) + 5
	if s.Overhead {
		n++
	}
	return n
}

// newStatistics is the table of the only run.
func newStatistics(b *analysis.Benchmark) *statistics {
	var has [3]bool
	var out statistics
	for _, m := range b.Metrics {
		for _, row := range m.Rows {
			c := &row.Cells[0]
			out.Overhead = out.Overhead || c.Overhead != nil
			if s := c.Summary; s != nil {
				has[0], has[1], has[2] = has[0] || s.P90 != nil, has[1] || s.P95 != nil, has[2] || s.P99 != nil
			}
		}
	}
	for i, name := range []string{"p90", "p95", "p99"} {
		if has[i] {
			out.Percentiles = append(out.Percentiles, name)
		}
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		g := statisticsGroup{Metric: m.Name, Help: m.Help, Derived: m.DerivedFrom}
		var gaps []string
		for j := range m.Rows {
			c := &m.Rows[j].Cells[0]
			if c.Absent {
				gaps = append(gaps, m.Rows[j].Target)
				continue
			}
			row := newStatisticsRow(m.Rows[j].Target, c, m.Metric, has, out.Overhead)
			row.Shift = quantity.Shift(c.Comparison, c.Summary, m.BaselineSummary(0))
			if m.Breached(c) {
				row.Alarm = fmt.Sprintf("%s: above %s", m.Bound.Broken, quantity.Text(m.Bound.Most, m.Unit))
			}
			g.Rows = append(g.Rows, row)
		}
		if len(gaps) > 0 {
			g.Rows = append(g.Rows, statisticsRow{Target: quantity.None, Reason: "not recorded on " + strings.Join(gaps, ", ")})
		}
		out.Groups = append(out.Groups, g)
	}
	return &out
}

func newStatisticsRow(target string, c *analysis.Cell, m result.Metric, percentiles [3]bool, overhead bool) statisticsRow {
	row := statisticsRow{Target: target, Reason: c.Reason, Baseline: c.Baseline}
	s := c.Summary
	if s == nil {
		return row
	}
	spell := func(v float64) string { return quantity.Text(v, m.Unit) }
	row.Headline = []string{fmt.Sprint(s.N), spell(s.Median), quantity.Interval(s.CI, s.Median, m.Unit)}
	for _, w := range s.Warnings {
		if w.Kind != stats.FewSamples { // the verdict has it
			row.Warnings = append(row.Warnings, w)
		}
	}
	row.judge(c, m, overhead)
	row.Rest = append(row.Rest, spell(s.Mean), spell(s.SD), spell(s.Min), spell(s.Max), spell(s.MAD))
	for i, p := range []*float64{s.P90, s.P95, s.P99} {
		switch {
		case !percentiles[i]:
		case p == nil:
			row.Rest = append(row.Rest, quantity.None)
		default:
			row.Rest = append(row.Rest, spell(*p))
		}
	}
	return row
}

// judge fills in the comparison with the baseline.
func (row *statisticsRow) judge(c *analysis.Cell, m result.Metric, overhead bool) {
	if overhead {
		value := quantity.None
		if c.Overhead != nil {
			value = quantity.Percent(*c.Overhead)
		}
		row.Rest = append(row.Rest, value)
	}
	k := c.Comparison
	if k == nil {
		row.Verdict = quantity.None
		if c.Baseline {
			row.Verdict = "baseline"
		}
		row.Headline = append(row.Headline, quantity.None, quantity.None)
		row.Rest = append(row.Rest, quantity.None, quantity.None, quantity.None)
		return
	}
	row.Verdict, row.Class = verdictText(k, m), heat(k)
	row.Headline = append(row.Headline, quantity.Ratio(k, m), quantity.FactorInterval(k))
	row.Rest = append(row.Rest, quantity.PValue(k.Adjusted), quantity.Percent(k.Detectable), quantity.MeansFactor(k, m))
}

// verdictText is the verdict with the part that decides it, and with the mark of a difference in its metric alone.
func verdictText(k *stats.Comparison, m result.Metric) string {
	text := quantity.VerdictWord(k.Verdict, m)
	switch part := quantity.Parts(k, m); {
	case part == "":
	case k.By == stats.Typical: // one part of a mixed difference
		text = part
	default:
		text = part + "; typical value not shown"
	}
	if tier := quantity.Tier(k); tier != "" {
		text += " in " + tier
	}
	return text
}
