package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// mostColumns is how many targets stand beside each other in the matrix. More of them are its rows:
// a page has room downwards.
const mostColumns = 8

// matrix is every metric on every target as its ratio to the baseline: one table with a column for
// each target, or a table for each benchmark with a row for each target.
type matrix struct {
	// Columns are the targets; empty if each group has columns of its own.
	Columns []heading
	Groups  []matrixGroup
	// Partial tells that there are metrics that are not in it.
	Partial bool
	// Brief tells that it has the first metric of each benchmark alone, with a group for each component: all of
	// them would be no overview.
	Brief bool
}

// mostWhole is how many benchmarks a report may have that shows all of each at once.
const mostWhole = 12

// heading is a target, whose name may be broken before its options, a metric, or in a brief matrix the metric of a
// benchmark, which has an ID.
type heading struct{ Full, Name, Options, Metric, ID string }

func newHeading(full string) heading {
	name, options, _ := strings.Cut(full, "@")
	return heading{Full: full, Name: name, Options: options}
}

// Width counts the columns of the table.
func (m *matrix) Width() int { return 1 + len(m.Columns) }

type matrixGroup struct {
	ID, Title string
	// Columns are the metrics, if rows are targets.
	Columns []heading
	Rows    []matrixRow
}

type matrixRow struct {
	Head  heading
	Cells []matrixCell
}

type matrixCell struct {
	Class string
	// Alarm says what does not hold.
	Alarm string
	// Main is the ratio, Word the verdict, Small the interval.
	Main, Word, Small, Title string
	// Absolute is the median, where that stands below the ratio.
	Absolute string
}

// newMatrix is nil if there is no number. Metrics that the baseline lacks have no ratios, and are not
// in it.
func newMatrix(m *report.Model) *matrix {
	var out matrix
	var targets []heading
	for _, t := range m.Targets {
		if t.OK > 0 {
			targets = append(targets, newHeading(t.Name))
		}
	}
	count := 0
	for _, s := range m.Suites {
		count += len(s.Benchmarks)
	}
	out.Brief = count > mostWhole
	count = 0
	for _, s := range m.Suites {
		for i := range s.Benchmarks {
			b := &s.Benchmarks[i]
			count++
			id := fmt.Sprintf("b%d", count)
			var rows []matrixRow
			for j := range b.Metrics {
				if slices.Contains(b.Unbased, b.Metrics[j].Name) {
					out.Partial = true
					continue
				}
				rows = append(rows, newMatrixRow(&b.Metrics[j], targets))
			}
			switch {
			case len(rows) == 0:
			case out.Brief:
				out.addBrief(b, telling(m, b), id, rows)
			default:
				out.Groups = append(out.Groups, matrixGroup{ID: id, Title: b.Title(), Rows: rows})
			}
		}
	}
	if len(out.Groups) == 0 {
		return nil
	}
	if len(targets) <= mostColumns {
		out.Columns = targets
		return &out
	}
	for i := range out.Groups {
		out.Groups[i].turn(targets)
	}
	return &out
}

// addBrief adds the first row of a benchmark to the group of its component. Breaches of others are marked too: they
// must not be hidden.
func (m *matrix) addBrief(b *report.Benchmark, telling, id string, rows []matrixRow) {
	component, facet := componentOf(b.Name)
	row := rows[0]
	row.Head = heading{Full: b.Title(), Name: facet + telling, Metric: row.Head.Name, ID: id}
	for _, other := range rows[1:] {
		for i, c := range other.Cells {
			if c.Alarm != "" && row.Cells[i].Alarm == "" {
				row.Cells[i].Alarm = c.Alarm
			}
		}
	}
	if last := len(m.Groups) - 1; last >= 0 && m.Groups[last].Title == component {
		m.Groups[last].Rows = append(m.Groups[last].Rows, row)
		return
	}
	m.Groups = append(m.Groups, matrixGroup{ID: id, Title: component, Rows: []matrixRow{row}})
}

// componentOf splits a name into its first two components, as performance.cpu, and the facet.
func componentOf(name string) (component, facet string) {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return name, name
	}
	return parts[0] + "." + parts[1], parts[2]
}

// turn makes rows of the targets and columns of the metrics.
func (g *matrixGroup) turn(targets []heading) {
	rows := make([]matrixRow, len(targets))
	for _, metric := range g.Rows {
		g.Columns = append(g.Columns, metric.Head)
		for i, c := range metric.Cells {
			rows[i].Head = targets[i]
			rows[i].Cells = append(rows[i].Cells, c)
		}
	}
	g.Rows = rows
}

func newMatrixRow(m *report.Metric, targets []heading) matrixRow {
	row := matrixRow{Head: heading{Full: m.Name, Name: m.Name}}
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
	cell := newRatioCell(c, m)
	if m.Breached(c) {
		cell.Alarm = m.Bound.Broken
	}
	return cell
}

func newRatioCell(c *report.Cell, m *report.Metric) matrixCell {
	switch {
	case c.Absent:
		return matrixCell{Class: "none", Main: report.None, Title: c.Reason}
	case c.Summary == nil:
		return matrixCell{Class: "none", Main: report.None, Word: "no value", Title: c.Reason}
	case c.Baseline:
		return matrixCell{Class: "base", Main: report.Quantity(c.Summary.Median, m.Unit), Word: "baseline"}
	case c.Comparison == nil:
		return matrixCell{Class: "neutral", Main: report.Quantity(c.Summary.Median, m.Unit)}
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
	// Alarm says what does not hold.
	Alarm string
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
		var absent []string
		for j := range m.Cells {
			if m.Cells[j].Absent {
				absent = append(absent, m.Cells[j].Target)
				continue
			}
			row := newStatisticsRow(&m.Cells[j], m.Unit, has, out.Overhead)
			if m.Breached(&m.Cells[j]) {
				row.Alarm = fmt.Sprintf("%s: more than %s", m.Bound.Broken, report.Quantity(m.Bound.Most, m.Unit))
			}
			g.Rows = append(g.Rows, row)
		}
		if len(absent) > 0 {
			g.Rows = append(g.Rows, statisticsRow{Target: report.None, Reason: "not recorded on " + strings.Join(absent, ", ")})
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
		row.Verdict = report.None
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
