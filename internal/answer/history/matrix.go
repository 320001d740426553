package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

const matrixNote = "Each cell has the last change of a series, with its p-value and the first run after it. Coloured changes have a direction, with stronger colours for larger ones."

// overview is the section before the series, for pages: the answer for all series, the matrix of their last changes if they are several, and the meaning
// of the intervals.
func overview(h *history.History, hasIntervals bool) document.Section {
	changes, regressions := 0, 0
	for i, c := range checks(h) {
		if slices.ContainsFunc(h.Series[i].Changes, func(c history.Change) bool { return c.Verdict != "" }) {
			changes++
		}
		if c.Status == document.Failed {
			regressions++
		}
	}
	answer := fmt.Sprintf("%d series, and %d with a change of the level.", len(h.Series), changes)
	if changes > 0 {
		answer += fmt.Sprintf(" The last change of %d is for the worse.", regressions)
	}
	section := document.Section{ID: "overview", Title: "Overview", Detail: true, Blocks: []document.Block{document.Text{Text: answer, Tone: document.Strong}}}
	if len(h.Series) > 1 {
		section.Blocks = append(section.Blocks, document.Text{Text: matrixNote}, matrix(h))
	}
	if hasIntervals {
		section.Blocks = append(section.Blocks, document.Text{Text: intervalNote, Tone: document.Faint})
	}
	return section
}

// matrix is the last change of each series, by benchmark with machine and by target.
func matrix(h *history.History) document.Matrix {
	entries := make([]document.MatrixEntry, 0, len(h.Series))
	places := map[[2]string]int{} // the number of series in a place
	for i := range h.Series {
		s := &h.Series[i]
		suite, _, _ := strings.Cut(s.Benchmark, ".")
		title := analysis.Key{Name: s.Benchmark, Params: s.Params}.Title()
		row := document.MatrixRow{ID: title, Suite: suite, Group: document.Span{Text: suite}, Name: document.Cell{{Text: title, Link: "#" + sectionID(s)}}}
		if s.Machine != "" {
			row.ID += " " + s.Machine
			row.Name = append(row.Name, document.Span{Text: "machine " + s.Machine})
		}
		place := [2]string{row.ID, s.Target}
		if places[place]++; places[place] > 1 { // another unit, or another machine of this name
			row.ID = fmt.Sprintf("%s (%d)", row.ID, places[place])
			row.Name = append(row.Name, document.Span{Text: fmt.Sprintf("series %d", places[place])})
		}
		last := &s.Points[len(s.Points)-1]
		value := document.Cell{{Text: quantity.Text(last.Value, s.Metric.Unit)}, {Text: last.StartedText(), Tone: document.Faint}}
		entries = append(entries, document.MatrixEntry{Row: row, Column: s.Target, Value: value, MatrixCell: lastChange(s)})
	}
	m := document.NewMatrix(entries, document.Cell{{Text: quantity.None}, {Text: "not measured", Tone: document.Faint}})
	m.RowNoun = "benchmarks"
	return m
}

// lastChange is the last change of a series, or the reason why it has none.
func lastChange(s *history.Series) document.MatrixCell {
	runs := wording.Counted(len(s.Points), "run")
	if len(s.Changes) == 0 {
		text := "no change"
		if s.Short() {
			text = "too few runs"
		}
		missing := document.Cell{{Text: quantity.None}, {Text: text, Tone: document.Faint}, {Text: runs, Tone: document.Faint}}
		return document.MatrixCell{Factor: missing, Difference: missing, Size: math.NaN()}
	}
	c := &s.Changes[len(s.Changes)-1]
	cell := document.MatrixCell{Size: math.Log(s.Metric.Cost(c.Ratio)), Shown: true}
	factor := document.Span{Text: quantity.Change(c.Ratio), Tone: document.Faint}
	difference := document.Span{Text: quantity.Signed(c.After-c.Before, s.Metric.Unit), Tone: document.Faint}
	if math.IsNaN(c.Ratio) { // a level is zero or negative
		factor = difference
	} else if c.Verdict == stats.Slower || c.Verdict == stats.Faster {
		factor.Tone, factor.Strength = document.Good, document.Strength(c.Ratio)
		if c.Verdict == stats.Slower {
			factor.Tone = document.Bad
		}
		difference.Tone, difference.Strength = factor.Tone, factor.Strength
	}
	words := document.Cell{{Text: cmp.Or(s.Word(c), "the variation alone") + ", p = " + quantity.PValue(c.P)}, {Text: "since " + s.Points[c.At].StartedText()}}
	cell.Factor, cell.Difference = append(document.Cell{factor}, words...), append(document.Cell{difference}, words...)
	return cell
}
