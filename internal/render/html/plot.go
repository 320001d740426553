package html

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
)

// Sizes of a panel, in units of its drawing.
const (
	plotLeft   = 46.0
	plotRight  = figureWidth - figureMargin
	plotHeight = 124.0
	plotTop    = 8.0
	bandTop    = 16.0 // below the names of bands
	plotFoot   = 34.0 // the height of the axis with its name
	placeInset = 10.0 // of the first and the last place
	kneeHeight = 7.0
	// fewPoints is the largest number of points that are marked.
	fewPoints = 24
)

// plot is a figure of lines, with one panel or several.
type plot struct {
	Name, Caption string
	Log           bool
	Legend        []lineKey
	Panels        []panel
}

// lineKey is a line with its colour and dashes.
type lineKey struct{ Name, Class string }

type panel struct {
	Name, Alt, Axis       string
	Width, Height         string
	Left, Right           string
	Bottom, TickY, LabelY string
	Drawn                 bool
	Y                     web.Axis
	X                     []web.Tick
	Bands                 []band
	Dots                  []string // the paths of single values
	Curves                []curve
	Regions               string // the names of bands that are too narrow for a name
	Zero                  string // the line of the value 0, if it is inside the plot
	count, total          int    // the points that are drawn, and all
	Data                  *lineData
	top, bottom           float64
}

// curve is a line. Its fields are paths: of the line, its points, their intervals, its line of regression, and the mark at its knee.
type curve struct{ Class, Path, Marks, Whiskers, Fit, Knee string }

// curves are all curves of a plot.
func curves(p *document.Plot) iter.Seq[*document.Curve] {
	return func(yield func(*document.Curve) bool) {
		for i := range p.Panels {
			for _, c := range p.Panels[i].Lines {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

func newPlot(p *document.Plot, r room, colours palette) *plot {
	out := &plot{Name: p.Name}
	hasBands := slices.ContainsFunc(p.Panels, func(p document.Panel) bool { return p.Bands != nil })
	top := plotTop
	if hasBands {
		top = bandTop
	}
	bottom := top + plotHeight
	y, hasAxis := valueAxis(p, bottom, top)
	var lines []string
	for _, name := range p.Names {
		lines = append(lines, colours.line(name))
		out.Legend = append(out.Legend, lineKey{name, colours.line(name)})
	}
	raw := rawValues(p)
	isWhole := raw <= r.raw
	count, total := 0, 0
	for i := range p.Panels {
		panel := panel{
			Name: p.Panels[i].Name, Alt: p.Panels[i].Text, Axis: p.Axis, Width: web.Num(figureWidth), Height: web.Num(bottom + plotFoot), Left: web.Num(plotLeft), Right: web.Num(plotRight),
			Bottom: web.Num(bottom), TickY: web.Num(bottom + 13), LabelY: web.Num(bottom + plotFoot - 5), Y: y, top: top, bottom: bottom,
		}
		if hasAxis && finite(p.Panels[i].End) && p.Panels[i].End > 0 {
			panel.Drawn, panel.Data = true, newLineData(p, &p.Panels[i], &y, top, bottom)
			panel.draw(p, &p.Panels[i], lines, isWhole, r)
		}
		count, total = count+panel.count, total+panel.total
		out.Panels = append(out.Panels, panel)
	}
	out.Log = y.Log
	parts := []string{p.Caption}
	switch {
	case raw == 0:
	case isWhole:
		parts = append(parts, "each value faint")
	default:
		parts = append(parts, "least and largest values faint")
	}
	out.Caption = strings.Join(slices.DeleteFunc(append(parts, shown(count, total)), func(s string) bool { return s == "" }), "; ")
	return out
}

// valueAxis is the axis of values that all panels share. It returns false without a finite value.
func valueAxis(p *document.Plot, bottom, top float64) (web.Axis, bool) {
	low, high := math.Inf(1), math.Inf(-1)
	add := func(values []float64) {
		for _, v := range values {
			if finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	for c := range curves(p) {
		add(c.Values)
		for _, interval := range c.Intervals {
			if interval != nil {
				add([]float64{interval.Lo, interval.Hi})
			}
		}
		for _, values := range c.Spread {
			add(values)
		}
	}
	switch {
	case low > high:
		return web.Axis{}, false
	case low == 0 && high == 0:
		high = 1
	}
	if p.Linear {
		return web.AxisOver(low, high, p.Unit, bottom, top, false)
	}
	return web.NewAxis([]float64{low, high}, p.Unit, bottom, top)
}

// lineClass is the classes of the line with a look: its colour and its dashes.
func lineClass(i int) string { return fmt.Sprintf("%s d%d", web.Colour(i), i%4+1) }

// draw draws the lines and the bands. The horizontal axis has places without a unit.
func (out *panel) draw(plot *document.Plot, p *document.Panel, lines []string, isWhole bool, r room) {
	unit := plot.Across
	var x func(place float64) float64
	if unit == "" {
		x = func(place float64) float64 {
			return plotLeft + placeInset + (plotRight-plotLeft-2*placeInset)*(place-1)/max(1, p.End-1)
		}
		step := (int(p.End) + 4) / 5
		for place := 1; place <= int(p.End); place += step {
			out.X = append(out.X, web.Tick{At: web.Num(x(float64(place))), Label: fmt.Sprint(place), Anchor: "middle"})
		}
	} else {
		axis := web.FullAxis(0, p.End, unit, plotLeft, plotRight)
		out.X, x = axis.Ticks, axis.At
		out.Bands, out.Regions = newBands(p.Bands, &axis, unit, plotLeft, plotRight)
	}
	if !out.Y.Log && out.Y.Spans(0) {
		out.Zero = web.Num(out.Y.At(0))
	}
	for i, c := range p.Lines {
		if c != nil {
			out.curve(c, plot.Names[i], lines[i], x, isWhole, r)
		}
	}
}

// curve draws a line with the points that the room holds.
func (out *panel) curve(c *document.Curve, name, class string, x func(place float64) float64, isWhole bool, r room) {
	limit := mostLine
	if c.Spread != nil {
		limit = r.places
	}
	n := min(len(c.At), len(c.Values))
	share := func(i int) float64 { return (across(x(c.At[i])) - plotLeft) / (plotRight - plotLeft) }
	selection := drawnPlaces(c.Values[:n], share, limit)
	out.count, out.total = out.count+len(selection), out.total+n
	out.Data.add(name, c, selection)
	place := func(i int, value float64) string {
		return web.Num(across(x(c.At[i]))) + " " + web.Num(out.height(value))
	}
	line := curve{Class: class, Path: path(selection, c.Values, place)}
	if len(selection) == n && (c.Spread != nil || n <= fewPoints) {
		line.Marks = points(selection, c.Values, place)
	}
	for _, i := range selection {
		if i < len(c.Intervals) && c.Intervals[i] != nil && finite(c.Intervals[i].Lo) && finite(c.Intervals[i].Hi) {
			line.Whiskers += "M" + place(i, c.Intervals[i].Lo) + "V" + web.Num(out.height(c.Intervals[i].Hi))
		}
	}
	if c.Spread != nil {
		var dots strings.Builder
		for _, v := range faint(c.Spread, isWhole, r.places) {
			if v.place < n && finite(v.value) {
				fmt.Fprintf(&dots, "M%sh0", place(v.place, v.value))
			}
		}
		out.Dots = append(out.Dots, dots.String())
	}
	if len(c.Fit) == n {
		// On a logarithmic axis a straight line is a curve, so it has as many points as the line itself. A knee is a corner of it.
		if k := c.Knee; k != nil {
			for i := range n {
				if i > 0 && c.At[i-1] < k.At && c.At[i] >= k.At {
					selection = append(selection, i-1, i)
				}
			}
			slices.Sort(selection)
			selection = slices.Compact(selection)
		}
		fit := slices.Clone(c.Fit)
		for i, v := range fit {
			if out.Y.Log && v <= 0 {
				fit[i] = math.NaN()
			}
		}
		line.Fit = path(selection, fit, place)
	}
	if k := c.Knee; k != nil && finite(k.At) && finite(k.Value) && (!out.Y.Log || k.Value > 0) {
		height := out.height(k.Value)
		line.Knee = fmt.Sprintf("M%s %sV%s", web.Num(across(x(k.At))), web.Num(height-kneeHeight), web.Num(height+kneeHeight))
	}
	out.Curves = append(out.Curves, line)
}

// across keeps a coordinate within the panel.
func across(x float64) float64 { return within(x, plotLeft, plotRight) }

// height is the coordinate of a value, within the panel.
func (out *panel) height(value float64) float64 {
	return min(max(out.Y.At(value), out.top), out.bottom)
}

// path is the path through values. A value that is no finite number interrupts it.
func path(selection []int, values []float64, place func(i int, value float64) string) string {
	var text strings.Builder
	letter := "M"
	for _, i := range selection {
		if !finite(values[i]) {
			letter = "M"
			continue
		}
		text.WriteString(letter + place(i, values[i]))
		letter = "L"
	}
	return text.String()
}

// points is the path of points.
func points(selection []int, values []float64, place func(i int, value float64) string) string {
	var text strings.Builder
	for _, i := range selection {
		if finite(values[i]) {
			text.WriteString("M" + place(i, values[i]) + "h0")
		}
	}
	return text.String()
}
