package ab

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// mostDrawn is the largest ratio of a figure, and its inverse the smallest one. An axis of more has no readable labels.
const mostDrawn = 10_000

// The groups of the marks.
const (
	ofRun = iota
	ofAll
)

// plots are a figure of each value, and the names of the values without one.
func plots(c *ab.Document) []document.Block {
	var blocks []document.Block
	var undrawn []string
	for i := range c.Values {
		v := &c.Values[i]
		switch figure, ok := draw(c, v); {
		case ok:
			blocks = append(blocks, figure)
		case v.Ratio != nil:
			undrawn = append(undrawn, v.Title()+" "+v.Metric)
		}
	}
	if undrawn != nil {
		text := fmt.Sprintf("Without a plot, because a ratio is beyond a factor of %s: %s.", quantity.Number(mostDrawn), strings.Join(undrawn, ", "))
		blocks = append(blocks, document.Text{Text: text})
	}
	if blocks == nil {
		return nil
	}
	return []document.Block{document.Section{ID: "plots", Title: "Plots", Detail: true, Blocks: blocks}}
}

// draw is the figure of a value: the ratio of all runs, the ratio of each run from top to bottom, and lines at 1 and at the margin. It returns
// false without a ratio, and if one is beyond mostDrawn. A figure without it would hide it.
func draw(c *ab.Document, v *ab.Outcome) (document.Lanes, bool) {
	limit, _ := limitOf(c, v)
	figure := document.Lanes{
		Name: v.Metric, Caption: fmt.Sprintf("B / A, %s is better; %s", v.Better, v.Title()), Unit: result.Score,
		Lines:  []document.Line{{Name: "equal", Value: 1}, {Name: fmt.Sprintf("the margin, %.4f", limit), Value: limit, Limit: true}},
		Groups: []string{"a run, with its own interval", "all runs"},
	}
	if v.Ratio != nil {
		if !drawable(*v.Ratio) {
			return document.Lanes{}, false
		}
		figure.Lanes = append(figure.Lanes, document.Lane{Name: "all runs", Marks: []document.Mark{mark(ofAll, *v.Ratio, v.Lo, v.Hi, "all runs: "+v.RatioText()+", "+v.IntervalText())}})
	}
	lane := document.Lane{Name: "each run, the first on top"}
	for i := range v.Ratios {
		r := &v.Ratios[i]
		if r.Ratio == nil {
			continue
		}
		if !drawable(*r.Ratio) {
			return document.Lanes{}, false
		}
		lane.Marks = append(lane.Marks, mark(ofRun, *r.Ratio, r.Lo, r.Hi, runName(i)+": "+r.RatioText()+", "+r.IntervalText()))
	}
	if v.Ratio == nil && lane.Marks == nil {
		return document.Lanes{}, false
	}
	figure.Lanes = append(figure.Lanes, lane)
	return figure, true
}

func drawable(ratio float64) bool { return ratio <= mostDrawn && ratio >= 1.0/mostDrawn }

// mark is a ratio with its interval. An end that is too far away for the axis is left out.
func mark(group int, ratio float64, low, high *float64, text string) document.Mark {
	m := document.Mark{Group: group, Value: ratio, Text: text}
	if low != nil && drawable(*low) {
		m.Low = low
	}
	if high != nil && drawable(*high) {
		m.High = high
	}
	return m
}
