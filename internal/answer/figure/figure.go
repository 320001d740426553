// Package figure makes the figures of a metric in one run: the samples of each target, and the series of each target by the place of its values.
package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Samples has a lane for each target, with a sample for each trial in the order of time. Its notes have the conditions with these names.
func Samples(m *analysis.Metric, conditions []analysis.Condition) document.Lanes {
	caption := []string{string(m.Better) + " is better"}
	if m.Series {
		caption = append(caption, "each trial’s median")
	}
	out := document.Lanes{Name: m.Name, Unit: m.Unit}
	for i := range m.Rows {
		c := &m.Rows[i].Cells[0]
		if c.Absent {
			continue
		}
		lane := document.Lane{Name: m.Rows[i].Target, Text: "no value", Baseline: c.Baseline}
		if c.Baseline {
			lane.Name += " (baseline)"
		}
		if s := c.Summary; s != nil {
			lane.Text, lane.Samples = quantity.Median(s, m.Unit), &document.Samples{Median: s.Median}
			lane.Samples.Low, lane.Samples.High = Ends(s.CI)
			lane.Samples.Values = make([]document.Sample, 0, len(c.Points))
			for _, p := range c.Points {
				lane.Samples.Values = append(lane.Samples.Values, document.Sample{Value: p.Value, Order: int32(p.Block), Hollow: p.Disturbed(), Note: noteOf(p, conditions)})
			}
		}
		out.Lanes = append(out.Lanes, lane)
	}
	if len(out.Lanes) < len(m.Rows) {
		caption = append(caption, fmt.Sprintf("on %d of %d targets", len(out.Lanes), len(m.Rows)))
	}
	out.Caption = strings.Join(caption, "; ")
	return out
}

// noteOf has the marks of a disturbed trial, then its conditions.
func noteOf(p analysis.Point, conditions []analysis.Condition) string {
	var parts []string
	if p.Disturbed() {
		parts = append(parts, "disturbed: "+strings.Join(p.Host.Marks, ", "))
	}
	for i := range conditions {
		if value, has := p.Conditions[conditions[i].Name]; has {
			parts = append(parts, conditions[i].Name+" "+value)
		}
	}
	return strings.Join(parts, "; ")
}

// Ends are the ends of an interval that may not exist.
func Ends(ci *stats.Interval) (low, high *float64) {
	if ci == nil {
		return nil, nil
	}
	return &ci.Lo, &ci.Hi
}

// fewestPlaces is the length of the shortest series with a figure.
const fewestPlaces = 3

// Series has a curve for each target: the medians over blocks by place, with the fitted line. The label is the name of the places. It returns
// false for a metric that is no series, and for short series.
func Series(m *analysis.Metric, label string) (document.Plot, bool) {
	places := 0
	for i := range m.Rows {
		places = max(places, len(m.Rows[i].Cells[0].Curve))
	}
	if places < fewestPlaces {
		return document.Plot{}, false
	}
	out := document.Plot{Name: m.Name, Caption: "by place: medians over blocks", Unit: m.Unit, Axis: label}
	numbers := make([]float64, places)
	for i := range numbers {
		numbers[i] = float64(i + 1)
	}
	panel := document.Panel{End: float64(places)}
	texts := []string{m.Name + " by " + label}
	for i := range m.Rows {
		row := &m.Rows[i]
		c := &row.Cells[0]
		out.Names = append(out.Names, row.Target)
		if len(c.Curve) == 0 {
			panel.Lines = append(panel.Lines, nil)
			continue
		}
		line := document.Curve{At: numbers[:len(c.Curve)]}
		for _, p := range c.Curve {
			line.Values, line.Spread = append(line.Values, p.Median), append(line.Spread, p.Values)
		}
		if t := c.Trend; t != nil {
			for _, place := range line.At {
				line.Fit = append(line.Fit, t.Fitted(place))
			}
			if t.Knee != nil {
				line.Knee = &document.Knee{At: t.Knee.At, Value: t.Knee.Value}
			}
		}
		panel.Lines = append(panel.Lines, &line)
		texts = append(texts, fmt.Sprintf("%s from %s to %s", row.Target, quantity.Text(line.Values[0], m.Unit), quantity.Text(line.Values[len(line.Values)-1], m.Unit)))
	}
	panel.Text = strings.Join(texts, "; ")
	out.Panels = []document.Panel{panel}
	return out, true
}

// Timelines has a panel for each target, with the timed regions as bands.
func Timelines(t *analysis.Timelines) document.Plot {
	out := document.Plot{Name: t.Title, Caption: "over time", Unit: t.Unit, Linear: true, Axis: "time since the start of the trial", Across: result.Seconds, Names: t.Names}
	if t.Change {
		out.Caption += ", change since the first value"
	}
	minimum, maximum := math.Inf(1), 0.0
	for i := range t.Panels {
		minimum, maximum = min(minimum, t.Panels[i].End), max(maximum, t.Panels[i].End)
	}
	isOwn := minimum*ownTimes < maximum
	if isOwn {
		out.Caption += "; each target has its own axis of time"
	}
	for i := range t.Panels {
		p := &t.Panels[i]
		panel := document.Panel{Name: p.Target, End: maximum}
		if isOwn {
			panel.End = p.End
		}
		for _, r := range p.Regions {
			panel.Bands = append(panel.Bands, document.Band{Name: r.Name, Start: r.Start, End: r.End})
		}
		texts := []string{t.Title + " on " + p.Target}
		for n, l := range p.Lines {
			if l == nil {
				panel.Lines = append(panel.Lines, nil)
				continue
			}
			line := document.Curve{At: l.At, Values: l.Values}
			if t.Change {
				line.Values = slices.Clone(l.Values)
				for k := range line.Values {
					line.Values[k] -= l.First
				}
			}
			panel.Lines = append(panel.Lines, &line)
			texts = append(texts, fmt.Sprintf("%s from %s to %s, at most %s", t.Names[n],
				quantity.Signed(l.First, t.Unit), quantity.Signed(l.Last, t.Unit), quantity.Signed(l.Max, t.Unit)))
		}
		panel.Text = strings.Join(texts, "; ")
		out.Panels = append(out.Panels, panel)
	}
	return out
}

// ownTimes is a quotient of the longest and the shortest trial. If it is larger, each panel has its own axis of time.
const ownTimes = 4
