package runs

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
)

// scorecards are the scorecards of all runs that have one.
func (b *builder) scorecards() []document.Block {
	var blocks []document.Block
	for i := range b.report.Runs {
		r := &b.report.Runs[i]
		if len(r.Scorecard.Targets) == 0 {
			continue
		}
		s := document.Section{ID: "scorecard", Title: "Scorecard"}
		if !b.single {
			s.ID, s.Title = "scorecard/"+r.ID, "Scorecard of "+r.Label
		}
		s.Blocks = scorecard(&r.Scorecard)
		blocks = append(blocks, s)
	}
	if blocks == nil {
		return nil
	}
	notes := document.Section{ID: "goals", Title: "Goals of the scorecard", Blocks: []document.Block{text(finding.ScorecardNote)}}
	if note := finding.EmulatedNote(b.report.Analysis); note != "" {
		notes.Blocks = append(notes.Blocks, text(note))
	}
	return append(blocks, notes)
}

// scorecard is a table of the dimensions, and the source of each score.
func scorecard(card *analysis.Scorecard) []document.Block {
	head := []document.Cell{nil}
	for _, name := range card.Targets {
		head = append(head, heading(name, false))
	}
	t := document.Table{Rows: [][]document.Cell{head}}
	sources := document.List{Title: "Sources"}
	tones := map[analysis.ScoreVerdict]document.Tone{analysis.Met: document.Good, analysis.Missed: document.Bad}
	for _, r := range card.Rows {
		if r.Unmeasured() {
			continue
		}
		row := []document.Cell{lines(string(r.Dimension), string(r.Goal))}
		for i := range r.Scores {
			row = append(row, score(&r.Scores[i], tones))
		}
		t.Rows = append(t.Rows, row)
		sources.Items = append(sources.Items, item(string(r.Dimension)+": "+finding.ScoreSources(card, &r)))
	}
	return []document.Block{t, sources}
}

func score(s *analysis.Score, tones map[analysis.ScoreVerdict]document.Tone) document.Cell {
	cell := document.Cell{{Text: finding.Score(s)}}
	if s.Value == nil {
		return cell
	}
	tone, found := tones[s.Verdict]
	if !found {
		tone = document.Faint
	}
	if s.Verdict != "" {
		cell = append(cell, document.Span{Text: string(s.Verdict), Tone: tone})
	}
	if interval := finding.ScoreInterval(s); interval != quantity.None {
		cell = append(cell, document.Span{Text: interval, Tone: document.Faint})
	}
	return cell
}
