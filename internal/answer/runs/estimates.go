package runs

import (
	"cmp"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/figure"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// estimates are a figure of the costs of a metric in several runs, and a figure of absolute values for each machine with several runs.
// Absolute values of different machines share no axis.
func (b *builder) estimates(bench *analysis.Benchmark, m *analysis.Metric) []document.Block {
	var figures []document.Block
	add := func(unit result.Unit, caption string, lines []document.Line, runs []int, read func(*analysis.Cell) (document.Mark, bool)) {
		f := document.Lanes{Name: m.Name, Caption: caption + " is better", Unit: unit, Lines: lines, Groups: make([]string, len(b.report.Runs))}
		count := 0
		for i := range m.Rows {
			lane := document.Lane{Name: m.Rows[i].Target}
			for _, run := range runs {
				mark, ok := read(&m.Rows[i].Cells[run])
				if !ok {
					continue
				}
				label := b.report.Runs[run].Label
				if f.Groups[run] == "" {
					f.Groups[run] = label
					count++
				}
				mark.Group, mark.Text = run, "on "+label+": "+mark.Text
				lane.Marks = append(lane.Marks, mark)
			}
			if lane.Marks != nil {
				f.Lanes = append(f.Lanes, lane)
			}
		}
		if count > 1 {
			figures = append(figures, f)
		}
	}
	if bench.Baseline != "" && !m.Unbased() {
		var runs []int
		for i := range b.report.Runs {
			runs = append(runs, i)
		}
		add(result.Score, "cost against "+bench.Baseline+" of the same run, "+string(result.Lower), []document.Line{{Value: 1}}, runs, func(c *analysis.Cell) (document.Mark, bool) { return cost(c.Comparison, m.Metric) })
	}
	for _, machine := range b.report.Machines {
		if len(machine.Runs) > 1 {
			add(m.Unit, "absolute, on "+machine.Name+", "+string(m.Better), nil, machine.Runs, func(c *analysis.Cell) (document.Mark, bool) { return absolute(c.Summary, m.Unit) })
		}
	}
	return figures
}

// cost is the mark of a cost, hollow without a shown difference.
func cost(k *stats.Comparison, m result.Metric) (document.Mark, bool) {
	if k == nil || quantity.Cost(k.Ratio, m) == quantity.None {
		return document.Mark{}, false
	}
	mark := document.Mark{Value: m.Cost(k.Ratio), Hollow: !k.Differs(), Text: costText(k, m) + ", " + quantity.CostInterval(k.CI, m)}
	if k.CI != nil {
		lo, hi := m.Cost(k.CI.Lo), m.Cost(k.CI.Hi)
		mark.Low, mark.High = figure.Ends(&stats.Interval{Lo: min(lo, hi), Hi: max(lo, hi)})
	}
	return mark, true
}

// absolute is the mark of a median.
func absolute(s *stats.Summary, unit result.Unit) (document.Mark, bool) {
	if s == nil {
		return document.Mark{}, false
	}
	mark := document.Mark{Value: s.Median, Text: quantity.Median(s, unit)}
	mark.Low, mark.High = figure.Ends(s.CI)
	return mark, true
}

// costText is the typical cost with the verdict: "1.01 ×, no difference shown".
func costText(k *stats.Comparison, m result.Metric) string {
	texts := []string{quantity.Cost(k.Ratio, m), cmp.Or(quantity.Parts(k, m, quantity.Cost), quantity.CostWord(k.Verdict, m))}
	if tier := quantity.Tier(k); tier != "" {
		texts = append(texts, tier)
	}
	return strings.Join(texts, ", ")
}
