// Package history makes the document of a history: a course of each series with its changes.
package history

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

const (
	// mostIntervals is the largest number of points with an interval each on a page. An interval takes milliseconds, and a page must not take minutes.
	mostIntervals = 500
	intervalNote  = "A line through a dot is the 95 % interval of the run's median. It shows the variation within the run, and not between runs. A run of few trials has none."
)

// Document is the document of a history.
func Document(h *history.History) *document.Document {
	d := &document.Document{Kind: "history", Title: "History of " + h.Metric, Checks: checks(h), Suite: "history " + h.Metric, Data: func() any { return newData(h) }, Records: func() document.Records { return records(h) }, Whole: "touchstone history " + h.Metric + " -o json"}
	for _, n := range h.Notes {
		d.Notes = append(d.Notes, document.Text{Text: n, Tone: document.Alarm})
	}
	points := 0
	for i := range h.Series {
		points += len(h.Series[i].Points)
	}
	hasIntervals := points <= mostIntervals
	d.Blocks = append(d.Blocks, overview(h, hasIntervals))
	for i := range h.Series {
		s := &h.Series[i]
		d.Blocks = append(d.Blocks, document.Section{ID: sectionID(s), Title: s.Title(), Blocks: []document.Block{course(s, hasIntervals), document.Text{Text: s.Summary()}}})
	}
	return d
}

func sectionID(s *history.Series) string { return "series/" + s.Title() }

// course has a point for each run.
func course(s *history.Series, hasIntervals bool) document.Course {
	c := document.Course{Name: s.Metric.Name, Unit: s.Metric.Unit, Columns: []string{"Started (UTC)", "Run", "Median", "Remark"}}
	if hasIntervals {
		c.Interval = func(index int) *document.PointInterval {
			p := &s.Points[index]
			ci := p.Interval()
			if ci == nil {
				return nil
			}
			return &document.PointInterval{Low: ci.Lo, High: ci.Hi, Text: "95 % interval " + quantity.Interval(ci, p.Value, s.Metric.Unit)}
		}
	}
	for i := range s.Points {
		p := &s.Points[i]
		c.Points = append(c.Points, document.Point{
			Labels: []string{p.StartedText(), p.Run}, Value: p.Value, Remark: p.Remark(),
			Text: quantity.Text(p.Value, s.Metric.Unit) + ", " + wording.Counted(p.Trials, "trial"),
		})
	}
	for i := range s.Changes {
		change := &s.Changes[i]
		c.Breaks = append(c.Breaks, document.Break{Index: change.At, Before: change.Before, After: change.After, Text: s.Describe(*change), Lines: change.Lines()})
	}
	return c
}
