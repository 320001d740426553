package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// matrix is every metric on every target as its ratio to the baseline.
type matrix struct {
	Targets []targetName
	Groups  []matrixGroup
}

// targetName is a target's name, which may be broken before its options.
type targetName struct{ Full, Name, Options string }

func newTargetName(full string) targetName {
	name, options, _ := strings.Cut(full, "@")
	return targetName{full, name, options}
}

// Columns counts those of the table.
func (m *matrix) Columns() int { return 1 + len(m.Targets) }

type matrixGroup struct {
	ID, Title, Baseline string
	Rows                []matrixRow
}

type matrixRow struct {
	Metric string
	Cells  []matrixCell
}

type matrixCell struct {
	Class string
	// Main is the ratio, Word the verdict, Small the interval.
	Main, Word, Small, Title string
}

// newMatrix is nil if there is no number.
func newMatrix(m *report.Model) *matrix {
	var out matrix
	for _, t := range m.Targets {
		if t.OK > 0 {
			out.Targets = append(out.Targets, newTargetName(t.Name))
		}
	}
	count := 0
	for _, s := range m.Suites {
		for i := range s.Benchmarks {
			b := &s.Benchmarks[i]
			count++
			if len(b.Metrics) == 0 {
				continue
			}
			g := matrixGroup{ID: fmt.Sprintf("b%d", count), Title: b.Title(), Baseline: b.Baseline}
			for j := range b.Metrics {
				g.Rows = append(g.Rows, newMatrixRow(&b.Metrics[j], out.Targets))
			}
			out.Groups = append(out.Groups, g)
		}
	}
	if len(out.Groups) == 0 {
		return nil
	}
	return &out
}

func newMatrixRow(m *report.Metric, targets []targetName) matrixRow {
	row := matrixRow{Metric: m.Name}
	for _, target := range targets {
		at := slices.IndexFunc(m.Cells, func(c report.Cell) bool { return c.Target == target.Full })
		if at < 0 {
			row.Cells = append(row.Cells, matrixCell{Class: "none", Main: report.None, Word: "not run"})
			continue
		}
		row.Cells = append(row.Cells, newMatrixCell(&m.Cells[at], m))
	}
	return row
}

func newMatrixCell(c *report.Cell, m *report.Metric) matrixCell {
	switch {
	case c.Summary == nil:
		return matrixCell{Class: "none", Main: report.None, Word: "no value", Title: c.Reason}
	case c.Baseline:
		return matrixCell{Class: "base", Main: report.Quantity(c.Summary.Median, m.Unit), Word: "baseline"}
	case c.Comparison == nil:
		return matrixCell{Class: "neutral", Main: report.Quantity(c.Summary.Median, m.Unit), Word: "no baseline"}
	}
	k := c.Comparison
	cell := matrixCell{Class: heat(k), Main: report.Ratio(k.Ratio), Word: report.VerdictWord(k.Verdict, m.Unit)}
	if k.CI != nil {
		cell.Small = report.RatioInterval(k.CI)
	}
	cell.Title = fmt.Sprintf("median %s; n = %d; adjusted p %s", report.Median(c.Summary, m.Unit), k.N, report.PValue(k.Adjusted))
	return cell
}

// statistics is the table of all that is known of a benchmark's metrics.
type statistics struct {
	Percentiles []string
	Overhead    bool
	Groups      []statisticsGroup
}

type statisticsGroup struct {
	Metric, Help string
	Rows         []statisticsRow
}

type statisticsRow struct {
	Target   string
	Reason   string
	Baseline bool
	// Headline is n, the median, its interval, the ratio and its interval.
	Headline []string
	Verdict  string
	Class    string
	// Warnings stand beside the verdict by their kinds.
	Warnings []stats.Warning
	// Judgement is the overhead if any is known, adjusted p, and the least difference that
	// would have been found.
	Judgement []string
	// Rest is the mean, sd, min, max, MAD and the percentiles.
	Rest []string
}

// Columns counts those behind the target.
func (s *statistics) Columns() int {
	n := 8 + len(s.Percentiles) + 5
	if s.Overhead {
		n++
	}
	return n
}

func newStatistics(b *report.Benchmark) *statistics {
	var has [3]bool
	var out statistics
	for _, m := range b.Metrics {
		for _, c := range m.Cells {
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
		g := statisticsGroup{Metric: m.Name, Help: m.Help}
		for j := range m.Cells {
			g.Rows = append(g.Rows, newStatisticsRow(&m.Cells[j], m.Unit, has, out.Overhead))
		}
		out.Groups = append(out.Groups, g)
	}
	return &out
}

func newStatisticsRow(c *report.Cell, unit result.Unit, percentiles [3]bool, overhead bool) statisticsRow {
	row := statisticsRow{Target: c.Target, Reason: c.Reason, Baseline: c.Baseline}
	s := c.Summary
	if s == nil {
		return row
	}
	quantity := func(v float64) string { return report.Quantity(v, unit) }
	row.Headline = []string{fmt.Sprint(s.N), quantity(s.Median), report.Interval(s.CI, s.Median, unit)}
	for _, w := range s.Warnings {
		if w.Kind != stats.FewSamples { // the verdict says so
			row.Warnings = append(row.Warnings, w)
		}
	}
	row.Rest = []string{quantity(s.Mean), quantity(s.SD), quantity(s.Min), quantity(s.Max), quantity(s.MAD)}
	for i, p := range []*float64{s.P90, s.P95, s.P99} {
		switch {
		case !percentiles[i]:
		case p == nil:
			row.Rest = append(row.Rest, report.None)
		default:
			row.Rest = append(row.Rest, quantity(*p))
		}
	}
	row.judge(c, unit, overhead)
	return row
}

// judge fills in the comparison with the baseline.
func (row *statisticsRow) judge(c *report.Cell, unit result.Unit, overhead bool) {
	if overhead {
		value := report.None
		if c.Overhead != nil {
			value = report.Percent(*c.Overhead)
		}
		row.Judgement = append(row.Judgement, value)
	}
	k := c.Comparison
	if k == nil {
		row.Verdict = "no baseline"
		if c.Baseline {
			row.Verdict = "baseline"
		}
		row.Headline = append(row.Headline, report.None, report.None)
		row.Judgement = append(row.Judgement, report.None, report.None)
		return
	}
	row.Verdict, row.Class = report.VerdictWord(k.Verdict, unit), heat(k)
	row.Headline = append(row.Headline, report.Ratio(k.Ratio), report.RatioInterval(k.CI))
	row.Judgement = append(row.Judgement, report.PValue(k.Adjusted), report.Percent(k.Detectable))
}
