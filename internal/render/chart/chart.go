// Package chart makes one form of all figures of a document, for formats that draw them by other programs or in other files: rows with values, or lines above a
// horizontal axis. Values stay in base units.
package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Chart is a figure.
type Chart struct {
	// Title has the titles of the sections around the figure.
	Title, Caption string
	// Name is the name of the axis of values, Unit its unit. Log is set if the axis should be logarithmic.
	Name string
	Unit result.Unit
	Log  bool
	// Rows are the names of rows: Place is then an index, and the axis of values is the horizontal one. Without rows Place is a number on the horizontal axis, which has the
	// name Across.
	Rows   []string
	Across string
	// Stacked is set if the values of a row are parts of a sum.
	Stacked bool
	// Lines are values with a meaning, such as a ratio of 1.
	Lines  []document.Line
	Series []Series
}

// Series is points with a name. Joined is set for a line.
type Series struct {
	Name   string
	Joined bool
	Points []Point
}

// Point is a value at a place. Low and High are the ends of its interval; nil is an end that does not exist.
type Point struct {
	Place, Value float64
	Low, High    *float64
	// Text says the value in words.
	Text string
}

// logFrom is the smallest quotient of the largest and the smallest value with a logarithmic axis, as on a page.
const logFrom = 10

// Label is the name of the axis of values with its unit.
func (c *Chart) Label() string {
	if c.Unit == "" {
		return c.Name
	}
	return strings.TrimSpace(c.Name + " (" + string(c.Unit) + ")")
}

// Number spells a value with all its digits.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Finite reports whether a value can be drawn.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Charts are the figures of a document that have a value.
func Charts(d *document.Document) []Chart {
	var list []Chart
	collect(document.Drawn(d.Blocks), "", func(c Chart) {
		c.Series = drawable(c.Series)
		if len(c.Series) > 0 {
			c.Log = !c.Stacked && c.isWide()
			list = append(list, c)
		}
	})
	return list
}

// collect passes the figures of blocks to add.
func collect(blocks []document.Block, title string, add func(Chart)) {
	for _, b := range blocks {
		switch b := b.(type) {
		case document.Section:
			collect(b.Blocks, joined(title, b.Title), add)
		case document.Lanes:
			add(lanes(&b, title))
		case document.Bars:
			add(bars(&b, title))
		case document.Course:
			add(course(&b, title))
		case document.Plot:
			for i := range b.Panels {
				add(panel(&b, &b.Panels[i], title))
			}
		}
	}
}

func joined(titles ...string) string {
	var parts []string
	for _, t := range titles {
		if t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, ": ")
}

// lanes has a series for each kind of marks, and one for the samples.
func lanes(l *document.Lanes, title string) Chart {
	c := Chart{Title: joined(title, l.Name), Caption: l.Caption, Name: l.Name, Unit: l.Unit, Lines: l.Lines}
	samples, medians, groups := Series{Name: "samples"}, Series{Name: "median"}, make([]Series, len(l.Groups))
	for i, name := range l.Groups {
		groups[i].Name = name
	}
	count, total := 0, 0
	for i := range l.Lanes {
		lane := &l.Lanes[i]
		row := float64(i)
		c.Rows = append(c.Rows, lane.Name)
		if s := lane.Samples; s != nil {
			values := make([]Point, 0, len(s.Values))
			for _, v := range s.Values {
				values = append(values, Point{Place: row, Value: v.Value})
			}
			selection := thin(values)
			count, total = count+len(selection), total+len(values)
			samples.Points = append(samples.Points, selection...)
			medians.Points = append(medians.Points, Point{row, s.Median, s.Low, s.High, lane.Text})
		}
		for _, m := range lane.Marks {
			for len(groups) <= m.Group {
				groups = append(groups, Series{})
			}
			groups[m.Group].Points = append(groups[m.Group].Points, Point{row, m.Value, m.Low, m.High, m.Text})
		}
	}
	c.Series = append([]Series{samples, medians}, groups...)
	c.remark(count, total)
	return c
}

// bars has a series for each part, or for several adjacent ones together. The caption of a page explains marks that only a page has.
func bars(b *document.Bars, title string) Chart {
	c := Chart{Title: title, Caption: "medians of the parts; the sum of a row need not be the median of the whole", Name: "value in base units", Stacked: true}
	places := map[string]int{}
	for i := range b.Bars {
		c.Rows = append(c.Rows, b.Bars[i].Name)
		for _, p := range b.Bars[i].Pieces {
			name := b.Name(p)
			place, found := places[name]
			if !found {
				place = len(c.Series)
				places[name] = place
				c.Series = append(c.Series, Series{Name: name})
			}
			c.Series[place].Points = append(c.Series[place].Points, Point{Place: float64(i), Value: p.Value, Text: p.Text})
		}
	}
	return c
}

// course has the values in their order. The tables have the breaks between them.
func course(f *document.Course, title string) Chart {
	c := Chart{Title: joined(title, f.Name), Name: f.Name, Unit: f.Unit, Across: "place in the order of time"}
	s := Series{Name: "value", Joined: true}
	for i := range f.Points {
		p := &f.Points[i]
		s.Points = append(s.Points, Point{Place: float64(i + 1), Value: p.Value, Text: strings.Join(append(append([]string{}, p.Labels...), p.Text), ", ")})
	}
	c.Series = []Series{s}
	return c
}

// panel is a drawing of a plot, with its lines. A page also has the single values behind them.
func panel(f *document.Plot, p *document.Panel, title string) Chart {
	c := Chart{Title: joined(title, f.Name, p.Name), Caption: f.Caption, Name: f.Name, Unit: f.Unit, Across: f.Axis}
	if f.Across != "" {
		c.Across += " (" + string(f.Across) + ")"
	}
	count, total := 0, 0
	for i, line := range p.Lines {
		if line == nil {
			continue
		}
		s := Series{Name: f.Names[i], Joined: true}
		for n := range min(len(line.At), len(line.Values)) {
			point := Point{Place: line.At[n], Value: line.Values[n]}
			if n < len(line.Intervals) && line.Intervals[n] != nil {
				point.Low, point.High = &line.Intervals[n].Lo, &line.Intervals[n].Hi
			}
			s.Points = append(s.Points, point)
		}
		total += len(s.Points)
		s.Points = thin(s.Points)
		count += len(s.Points)
		c.Series = append(c.Series, s)
	}
	c.remark(count, total)
	return c
}

// mostPoints is about the largest number of points of a line, and of samples in a row. TeX and a browser draw more of them slowly.
const mostPoints = 500

// thin leaves out points at even distances, except for the least and the largest value.
func thin(points []Point) []Point {
	if len(points) <= mostPoints {
		return points
	}
	minimum, maximum := 0, 0 // their places
	for i, p := range points {
		if p.Value < points[minimum].Value {
			minimum = i
		}
		if p.Value > points[maximum].Value {
			maximum = i
		}
	}
	var list []Point
	step := (len(points) + mostPoints - 1) / mostPoints
	for i, p := range points {
		if i%step == 0 || i == minimum || i == maximum {
			list = append(list, p)
		}
	}
	return list
}

// remark states the number of the points if some are left out.
func (c *Chart) remark(count, total int) {
	if count < total {
		c.Caption = strings.TrimPrefix(fmt.Sprintf("%s; shown: %d of %d values, extremes kept", c.Caption, count, total), "; ")
	}
}

// drawable has the series with finite values.
func drawable(series []Series) []Series {
	var list []Series
	for _, s := range series {
		var points []Point
		for _, p := range s.Points {
			if Finite(p.Place) && Finite(p.Value) {
				points = append(points, p)
			}
		}
		if points != nil {
			list = append(list, Series{s.Name, s.Joined, points})
		}
	}
	return list
}

// isWide reports whether a logarithmic axis can and should show the values.
func (c *Chart) isWide() bool {
	low, high := c.Extent()
	return low > 0 && high/low > logFrom
}

// Extent is the least and the largest value with its interval and the lines. The pieces of a stacked row count together, from zero.
func (c *Chart) Extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	add := func(v float64) {
		if Finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if c.Stacked {
		add(0)
		sums := map[[2]float64]float64{} // by row and sign
		for _, s := range c.Series {
			for _, p := range s.Points {
				key := [2]float64{p.Place, math.Copysign(1, p.Value)}
				sums[key] += p.Value
				add(sums[key])
			}
		}
		return low, high
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			add(p.Value)
			for _, end := range []*float64{p.Low, p.High} {
				if end != nil {
					add(*end)
				}
			}
		}
	}
	for _, l := range c.Lines {
		add(l.Value)
	}
	return low, high
}
