package runs

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// statistics is the table of all statistics of a benchmark in the only run.
type statistics struct {
	// percentiles are set for p90, p95 and p99 if some target has them, overhead if some target has one.
	percentiles [3]bool
	overhead    bool
}

// percentileNames are the names of the percentiles.
var percentileNames = [3]string{"p90", "p95", "p99"}

// allStatistics is the table of all metrics.
func allStatistics(bench *analysis.Benchmark) []document.Block {
	var s statistics
	for _, m := range bench.Metrics {
		for _, row := range m.Rows {
			c := &row.Cells[0]
			s.overhead = s.overhead || c.Overhead != nil
			for i, p := range percentiles(c.Summary) {
				s.percentiles[i] = s.percentiles[i] || p != nil
			}
		}
	}
	heads := []string{"Target", "n", "Median", "95 % interval", "Cost", "Interval", "Verdict"}
	if s.overhead {
		heads = append(heads, "Overhead")
	}
	heads = append(heads, "p adj.", "Detectable", "Means", "Mean", "SD", "Min", "Max", "MAD")
	for i, has := range s.percentiles {
		if has {
			heads = append(heads, percentileNames[i])
		}
	}
	t := document.Table{Rows: [][]document.Cell{document.Cells(heads...)}}
	for i := range bench.Metrics {
		m := &bench.Metrics[i]
		title := document.Cell{{Text: m.Name}}
		if m.DerivedFrom != "" {
			title = append(title, document.Span{Text: "derived from " + m.DerivedFrom, Tone: document.Faint})
		}
		if m.Help != "" {
			title = append(title, document.Span{Text: m.Help, Tone: document.Faint})
		}
		t.Rows = append(t.Rows, []document.Cell{title})
		var gaps []string
		for j := range m.Rows {
			if c := &m.Rows[j].Cells[0]; c.Absent {
				gaps = append(gaps, m.Rows[j].Target)
			} else {
				t.Rows = append(t.Rows, s.row(m, m.Rows[j].Target, c))
			}
		}
		if len(gaps) > 0 {
			t.Rows = append(t.Rows, []document.Cell{lines(quantity.None), {{Text: "not recorded on " + strings.Join(gaps, ", "), Tone: document.Faint}}})
		}
	}
	return explained(t, "the number does not exist. The column of verdicts has the reason. A percentile needs two values above it.")
}

// percentiles are p90, p95 and p99, each nil if it does not exist.
func percentiles(s *stats.Summary) [3]*float64 {
	if s == nil {
		return [3]*float64{}
	}
	return [3]*float64{s.P90, s.P95, s.P99}
}

// row is the statistics of a target. Without a number it has the reason.
func (s *statistics) row(m *analysis.Metric, target string, c *analysis.Cell) []document.Cell {
	row := []document.Cell{heading(target, c.Baseline)}
	sum := c.Summary
	if sum == nil {
		return append(row, document.Cell{{Text: c.Reason, Tone: document.Faint}})
	}
	spell := func(v float64) string { return quantity.Text(v, m.Unit) }
	row = append(row, document.Cells(fmt.Sprint(sum.N), spell(sum.Median), quantity.Interval(sum.CI, sum.Median, m.Unit))...)
	row = append(row, s.judged(m, c)...)
	row = append(row, document.Cells(spell(sum.Mean), spell(sum.SD), spell(sum.Min), spell(sum.Max), spell(sum.MAD))...)
	for i, p := range percentiles(sum) {
		switch {
		case !s.percentiles[i]:
		case p == nil:
			row = append(row, lines(quantity.None))
		default:
			row = append(row, lines(spell(*p)))
		}
	}
	return row
}

// judged is the comparison with the baseline: the columns from the cost to the means.
func (s *statistics) judged(m *analysis.Metric, c *analysis.Cell) []document.Cell {
	cost, interval, word := quantity.None, quantity.None, document.Cell(nil)
	rest := []string{quantity.None, quantity.None, quantity.None}
	switch k := c.Comparison; {
	case k != nil:
		cost, interval = quantity.Cost(k.Ratio, m.Metric), quantity.CostInterval(k.CI, m.Metric)
		tone := map[stats.Verdict]document.Tone{stats.Faster: document.Good, stats.Slower: document.Bad}[k.Verdict]
		word = document.Cell{{Text: verdictText(k, m.Metric), Tone: tone}}
		rest = []string{quantity.PValue(k.Adjusted), quantity.Percent(k.Detectable), quantity.MeansCost(k, m.Metric)}
	case c.Baseline:
		word = lines("baseline")
	case m.DerivedFrom != "":
		word = lines("derived")
	case m.NoVerdict != "":
		word = lines("no verdict: " + m.NoVerdict)
	case m.Unbased():
		word = lines(m.WhyUnbased("the baseline"))
	default:
		word = lines("not compared")
	}
	if text := quantity.Shift(c.Comparison, m.Metric, c.Summary, m.BaselineSummary(0)); text != "" {
		word = append(word, document.Span{Text: text, Tone: document.Faint})
	}
	if m.Breached(c) {
		word = append(word, document.Span{Text: fmt.Sprintf("%s: above %s", m.Bound.Broken, quantity.Text(m.Bound.Most, m.Unit)), Tone: document.Alarm})
	}
	for _, w := range c.Summary.Warnings {
		if w.Kind != stats.FewSamples { // the verdict has it
			word = append(word, document.Span{Text: w.Message, Tone: document.Faint})
		}
	}
	cells := []document.Cell{lines(cost), lines(interval), word}
	if s.overhead {
		overhead := quantity.None
		if c.Overhead != nil {
			overhead = quantity.Percent(*c.Overhead)
		}
		cells = append(cells, lines(overhead))
	}
	return append(cells, document.Cells(rest...)...)
}

// verdictText is the verdict with the part that decides it, and with the mark of a difference in its metric alone.
func verdictText(k *stats.Comparison, m result.Metric) string {
	text := quantity.VerdictWord(k.Verdict, m)
	switch part := quantity.Parts(k, m, quantity.Cost); {
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
