package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// mostColumns is the largest number of targets in columns. More targets are rows, because a page has room downwards.
const mostColumns = 8

// mostWhole is the largest number of benchmarks in an overview of all metrics. Longer overviews have one metric of each.
const mostWhole = 12

// matrix is the overview: metrics and targets by their factors to the baseline. For one run it has a column for each target,
// or a table for each benchmark with a row for each target. For several runs it has a column for each run.
type matrix struct {
	// Columns are the targets of one run. They are empty if each group has columns of its own, and with several runs, whose
	// columns are Heads.
	Columns []heading
	Heads   []runHead
	Groups  []matrixGroup
	// Partial is set if some metrics are not in it.
	Partial bool
	// Brief is set if it has only the first metric of each benchmark.
	Brief bool
}

// heading is a target, with a possible line break before its options, or a metric. In a brief matrix it is the metric of a
// benchmark, which has an ID.
type heading struct{ Full, Name, Options, Metric, ID string }

func newHeading(full string) heading {
	name, options, _ := strings.Cut(full, "@")
	return heading{Full: full, Name: name, Options: options}
}

// Width counts the columns of the table.
func (m *matrix) Width() int { return 1 + len(m.Columns) + len(m.Heads) }

type matrixGroup struct {
	ID, Title, About, Help string
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
	// Alarm describes a breach.
	Alarm string
	// Main is the factor, Word a verdict that is no difference, Small the interval.
	Main, Word, Small, Title string
	// Absolute is the median, if it is below the factor.
	Absolute string
}

// newMatrix is the overview of one run. It is nil without numbers. Metrics without a value on the baseline and derived
// metrics are not in it.
func newMatrix(r *analysis.Run, list []*benchmark) *matrix {
	out := matrix{Brief: len(list) > mostWhole}
	var targets []heading
	for _, t := range r.Targets {
		if t.OK > 0 {
			targets = append(targets, newHeading(t.Name))
		}
	}
	for _, b := range list {
		var rows []matrixRow
		for j := range b.Metrics {
			m := &b.Metrics[j]
			if m.Unbased() || m.DerivedFrom != "" {
				out.Partial = true
				continue
			}
			row := matrixRow{Head: heading{Full: m.Name, Name: m.Name}}
			for _, target := range targets {
				index := slices.IndexFunc(m.Rows, func(r analysis.Row) bool { return r.Target == target.Full })
				if index < 0 {
					row.Cells = append(row.Cells, matrixCell{Class: "none", Main: quantity.None, Word: "not run"})
					continue
				}
				row.Cells = append(row.Cells, newMatrixCell(&m.Rows[index].Cells[0], m))
			}
			rows = append(rows, row)
		}
		switch {
		case len(rows) == 0:
		case out.Brief:
			out.addBrief(b, rows)
		default:
			out.Groups = append(out.Groups, matrixGroup{ID: b.ID, Title: b.Title(), Rows: rows})
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

// addBrief adds the first row of a benchmark to the group of its component. It marks breaches of the other rows too, so that
// they are visible.
func (m *matrix) addBrief(b *benchmark, rows []matrixRow) {
	component, facet := componentOf(b.Name)
	row := rows[0]
	row.Head = heading{Full: b.Title(), Name: facet + b.Extra, Metric: row.Head.Name, ID: b.ID}
	for _, line := range rows[1:] {
		for i, c := range line.Cells {
			if c.Alarm != "" && row.Cells[i].Alarm == "" {
				row.Cells[i].Alarm = c.Alarm
			}
		}
	}
	if last := len(m.Groups) - 1; last >= 0 && m.Groups[last].Title == component {
		m.Groups[last].Rows = append(m.Groups[last].Rows, row)
		return
	}
	m.Groups = append(m.Groups, matrixGroup{ID: b.ID, Title: component, Rows: []matrixRow{row}})
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

// newSideMatrix is the overview of several runs. Benchmarks of one run alone and without a common baseline are not in it.
func newSideMatrix(heads []runHead, list []*benchmark) *matrix {
	out := matrix{Heads: heads, Brief: len(list) > mostWhole}
	for _, b := range list {
		if len(b.Heads) < 2 || b.Baseline == "" {
			continue
		}
		var rows []matrixRow
		for i := range b.Metrics {
			m := &b.Metrics[i]
			if m.Unbased() || m.DerivedFrom != "" || out.Brief && len(rows) > 0 {
				continue
			}
			for n := range m.Rows {
				r := &m.Rows[n]
				if r.Baseline || !r.Has() {
					continue
				}
				row := matrixRow{Head: newHeading(r.Target)}
				row.Head.Metric = m.Name
				for c := range r.Cells {
					row.Cells = append(row.Cells, newMatrixCell(&r.Cells[c], m))
				}
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			out.Groups = append(out.Groups, matrixGroup{ID: b.ID, Title: b.Title(), Rows: rows})
		}
	}
	if len(out.Groups) == 0 {
		return nil
	}
	return &out
}

// newSideGroup is a metric of several runs: factors with absolute medians, by target and run.
func newSideGroup(b *analysis.Benchmark, m *analysis.Metric) matrixGroup {
	g := matrixGroup{Title: m.Name, About: string(m.Better) + " is better", Help: m.Help}
	switch {
	case m.DerivedFrom != "":
		g.About += "; derived from " + m.DerivedFrom + ", so without a ratio"
	case m.Unbased():
		g.About += "; no ratio, because " + m.WhyUnbased(b.Baseline)
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		if !r.Has() {
			continue
		}
		row := matrixRow{Head: newHeading(r.Target)}
		for run := range r.Cells {
			if b.Sections[run] == nil {
				continue
			}
			c := &r.Cells[run]
			cell := newMatrixCell(c, m)
			switch {
			case c.Summary == nil:
			case c.Comparison != nil:
				cell.Absolute = fmt.Sprintf("%s, n = %d", quantity.Median(c.Summary, m.Unit), c.Summary.N)
			default: // the median is above
				cell.Absolute = fmt.Sprintf("%s, n = %d", quantity.Interval(c.Summary.CI, c.Summary.Median, m.Unit), c.Summary.N)
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// acrossRows are the typical ratios to the first run, with --across-machines.
func acrossRows(m *analysis.Metric) []matrixRow {
	var rows []matrixRow
	for _, r := range m.Rows {
		row := matrixRow{Head: newHeading(r.Target)}
		has := false
		for _, c := range r.Cells[1:] {
			cell := matrixCell{Class: "none", Main: quantity.None}
			if c.Across != nil {
				has = true
				cell = matrixCell{Class: "neutral", Main: quantity.Ratio(c.Across, m.Metric), Small: quantity.FactorInterval(c.Across)}
			}
			row.Cells = append(row.Cells, cell)
		}
		if has {
			rows = append(rows, row)
		}
	}
	return rows
}

func newMatrixCell(c *analysis.Cell, m *analysis.Metric) matrixCell {
	cell := newFactorCell(c, m)
	if m.Breached(c) {
		cell.Alarm = m.Bound.Broken
	}
	return cell
}

func newFactorCell(c *analysis.Cell, m *analysis.Metric) matrixCell {
	switch {
	case c.Summary == nil:
		return matrixCell{Class: "none", Main: quantity.None, Word: c.Lack, Title: c.Reason}
	case c.Baseline:
		return matrixCell{Class: "base", Main: quantity.Text(c.Summary.Median, m.Unit), Word: "baseline"}
	case c.Comparison == nil:
		return matrixCell{Class: "neutral", Main: quantity.Text(c.Summary.Median, m.Unit)}
	}
	k := c.Comparison
	cell := matrixCell{Class: heat(k), Main: quantity.DecidingFactor(k, m.Metric)}
	if !k.Differs() {
		cell.Word = quantity.VerdictWord(k.Verdict, m.Metric)
	} else {
		cell.Word = quantity.DecidingPart(k, m.Metric)
		if quantity.Tier(k) != "" {
			cell.Main += " " + quantity.AloneMark
		}
	}
	switch {
	case k.CI == nil:
	case k.Differs() && k.By != stats.Typical:
		cell.Small = fmt.Sprintf("typical value %s (%s)", quantity.Ratio(k, m.Metric), quantity.FactorInterval(k))
	default:
		cell.Small = quantity.FactorInterval(k)
	}
	cell.Title = fmt.Sprintf("median %s; n = %d; adjusted p %s", quantity.Median(c.Summary, m.Unit), k.N, quantity.PValue(k.Adjusted))
	return cell
}
