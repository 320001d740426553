package html

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
)

// card is the scorecard of one run.
type card struct {
	// Label names the run; empty for the only run.
	Label, Note string
	// Emulated explains verdicts that are withheld. It is empty if none is.
	Emulated string
	Heads    []heading
	Rows     []cardRow
}

// cardRow is a dimension with a value on some target.
type cardRow struct {
	Name, Goal string
	Cells      []cardCell
}

// cardCell is a score. Class is the class of its verdict.
type cardCell struct {
	Class, Verdict, Text, Interval, Source string
}

// cards are the scorecards of all runs that have one.
func cards(r *report.Report) []card {
	var list []card
	for i := range r.Runs {
		run := &r.Runs[i]
		if len(run.Scorecard.Targets) == 0 {
			continue
		}
		c := newCard(&run.Scorecard)
		if run.Withheld > 0 {
			c.Emulated = finding.EmulatedNote(r.Analysis)
		}
		if len(r.Runs) > 1 {
			c.Label = run.Label
		}
		list = append(list, c)
	}
	return list
}

func newCard(source *analysis.Scorecard) card {
	c := card{Note: finding.ScorecardNote}
	for _, name := range source.Targets {
		c.Heads = append(c.Heads, newHeading(name))
	}
	for i := range source.Rows {
		r := &source.Rows[i]
		if r.Unmeasured() {
			continue
		}
		row := cardRow{Name: string(r.Dimension), Goal: string(r.Goal)}
		for n := range r.Scores {
			row.Cells = append(row.Cells, newCardCell(&r.Scores[n]))
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

func newCardCell(s *analysis.Score) cardCell {
	classes := map[analysis.ScoreVerdict]string{analysis.Met: "met", analysis.Missed: "missed"}
	c := cardCell{Class: classes[s.Verdict], Verdict: string(s.Verdict), Text: finding.Score(s), Source: finding.ScoreSource(s)}
	if s.Value == nil {
		c.Verdict = ""
	}
	if interval := finding.ScoreInterval(s); interval != quantity.None {
		c.Interval = interval
	}
	return c
}
