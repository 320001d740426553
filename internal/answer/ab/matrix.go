package ab

import (
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	matrixNote = "Each cell has B / A and its interval. A coloured ratio of all runs is a shown difference: its interval excludes 1. It may be smaller than the margin. The interval of one run shows only the " +
		"variation within it, so its ratio has no colour."
	// mostColumns is the largest number of runs with a column each. The table of the runs has more.
	mostColumns = 24
)

// matrix is the section with all values over all runs and in each run, for pages. A single value needs none.
func matrix(c *ab.Document) []document.Block {
	if len(c.Values) < 2 {
		return nil
	}
	var entries []document.MatrixEntry
	for i := range c.Values {
		v := &c.Values[i]
		suite, _, _ := strings.Cut(v.Benchmark, ".")
		row := document.MatrixRow{ID: v.Title() + "/" + v.Metric, Suite: suite, Group: document.Span{Text: v.Title()}, Name: lines(v.Metric, string(v.Better)+" is better")}
		entries = append(entries, document.MatrixEntry{Row: row, Column: "all runs", MatrixCell: overall(v, len(c.Runs))})
		for n := range v.Ratios {
			r := &v.Ratios[n]
			cell := document.Cell{{Text: r.RatioText(), Tone: document.Faint}, {Text: r.IntervalText()}}
			if r.Reason != "" {
				cell[1].Text = r.Reason
			}
			if len(c.Runs) <= mostColumns {
				entries = append(entries, document.MatrixEntry{Row: row, Column: runName(n), MatrixCell: document.MatrixCell{Factor: cell, Size: size(v, r.Ratio)}})
			}
		}
	}
	m := document.NewMatrix(entries, lines(quantity.None))
	m.RowNoun, m.ColumnNoun = "values", "columns"
	return []document.Block{document.Section{ID: "overview", Title: "Overview", Detail: true, Blocks: []document.Block{document.Text{Text: matrixNote}, m}}}
}

// overall is the ratio of all runs.
func overall(v *ab.Outcome, runs int) document.MatrixCell {
	cell := document.MatrixCell{Size: size(v, v.Ratio), Shown: v.Ratio != nil && (v.Lo != nil && *v.Lo > 1 || v.Hi != nil && *v.Hi < 1)}
	ratio := document.Span{Text: v.RatioText(), Tone: document.Faint}
	if cell.Shown {
		ratio.Tone, ratio.Strength = document.Good, document.Strength(*v.Ratio)
		if cell.Size > 0 {
			ratio.Tone = document.Bad
		}
	}
	cell.Factor = document.Cell{ratio}
	if v.Lo != nil || v.Hi != nil {
		cell.Factor = append(cell.Factor, document.Span{Text: v.IntervalText()})
	}
	cell.Factor = append(cell.Factor, document.Span{Text: v.AnswerText(runs)})
	return cell
}

// size is the logarithm of a ratio, positive if B is worse.
func size(v *ab.Outcome, ratio *float64) float64 {
	if ratio == nil {
		return math.NaN()
	}
	metric := result.Metric{Better: v.Better}
	return math.Log(metric.Cost(*ratio))
}
