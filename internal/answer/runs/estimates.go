package runs

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/figure"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// estimates are a figure of the ratios of a metric in several runs, and a figure of absolute values for each machine with several runs.
// Absolute values of different machines share no axis.
func (b *builder) estimates(bench *analysis.Benchmark, m *analysis.Metric) []document.Block {
	var figures []document.Block
	add := func(unit result.Unit, caption string, lines []document.Line, runs []int, read func(*analysis.Cell) (document.Mark, bool)) {
		f := document.Lanes{Name: m.Name, Caption: caption + ", " + string(m.Better) + " is better", Unit: unit, Lines: lines, Groups: make([]string, len(b.report.Runs))}
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
		add(result.Score, "ratio to "+bench.Baseline+" of the same run", []document.Line{{Value: 1}}, runs, func(c *analysis.Cell) (document.Mark, bool) { return ratio(c.Comparison, m.Metric) })
	}
	for _, machine := range b.report.Machines {
		if len(machine.Runs) > 1 {
			add(m.Unit, "absolute, on "+machine.Name, nil, machine.Runs, func(c *analysis.Cell) (document.Mark, bool) { return absolute(c.Summary, m.Unit) })
		}
	}
	return figures
}

// ratio is the mark of a ratio, hollow without a shown difference.
func ratio(k *stats.Comparison, m result.Metric) (document.Mark, bool) {
	if k == nil || quantity.Ratio(k, m) == quantity.None {
		return document.Mark{}, false
	}
	mark := document.Mark{Value: k.Ratio, Hollow: !k.Differs(), Text: factorText(k, m) + ", " + quantity.FactorInterval(k)}
	mark.Low, mark.High = figure.Ends(k.CI)
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

// factorText is the factor with a verdict that is no difference: "1.01 × slower, no difference shown".
func factorText(k *stats.Comparison, m result.Metric) string {
	text := quantity.Ratio(k, m)
	if !k.Differs() {
		return text + ", " + quantity.VerdictWord(k.Verdict, m)
	}
	for _, part := range slices.DeleteFunc([]string{quantity.Parts(k, m), quantity.Tier(k)}, func(s string) bool { return s == "" }) {
		text += ", " + part
	}
	return text
}
