// Package history makes the document of a history: a course of each series with its changes.
package history

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/history"
)

// Document is the document of a history.
func Document(h *history.History) *document.Document {
	d := &document.Document{Kind: "history", Title: "History of " + h.Metric, Checks: checks(h), Suite: "history " + h.Metric, Data: func() any { return newData(h) }, Records: func() document.Records { return records(h) }, Whole: "touchstone history " + h.Metric + " -o json"}
	for _, n := range h.Notes {
		d.Notes = append(d.Notes, document.Text{Text: n, Tone: document.Alarm})
	}
	for i := range h.Series {
		s := &h.Series[i]
		d.Blocks = append(d.Blocks, document.Section{ID: "series/" + s.Title(), Title: s.Title(), Blocks: []document.Block{course(s), document.Text{Text: s.Summary()}}})
	}
	return d
}

// course has a point for each run.
func course(s *history.Series) document.Course {
	c := document.Course{Name: s.Metric.Name, Unit: s.Metric.Unit, Columns: []string{"Started (UTC)", "Run", "Median", "Remark"}}
	for i := range s.Points {
		p := &s.Points[i]
		c.Points = append(c.Points, document.Point{
			Labels: []string{p.StartedText(), p.Run}, Value: p.Value, Remark: p.Remark(),
			Text: quantity.Text(p.Value, s.Metric.Unit) + ", " + quantity.Counted(p.Trials, "trial"),
		})
	}
	for i := range s.Changes {
		change := &s.Changes[i]
		c.Breaks = append(c.Breaks, document.Break{Index: change.At, Before: change.Before, After: change.After, Text: s.Describe(*change), Lines: change.Lines()})
	}
	return c
}
