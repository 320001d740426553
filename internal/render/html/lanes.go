package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
)

// Sizes of figures in units of their drawings. Their columns have about the same width in CSS pixels, so that text keeps its size, on a phone
// too.
const (
	figureWidth  = 320.0
	figureMargin = 8.0
)

// Sizes of a figure with lanes.
const (
	lanesAxis   = 24.0  // the height of the axis with its labels
	labelDepth  = 13.0  // from the top of a lane to its label
	firstMark   = 22.0  // from the top of a lane to its first mark
	firstSample = 18.0  // from the top of a lane to its first sample
	sampleDepth = 18.0  // of all samples of a lane
	lineExcess  = 3.0   // of the line of the median
	markStep    = 11.0  // from mark to mark
	markRadius  = 3.6   // of a shape
	mostHeight  = 440.0 // of all marks of a lane
	keyMiddle   = 6.0
	keyRadius   = 4.2
)

// longestName is the longest name that fits above a lane. With a text beside it the longest one is shortName.
const (
	longestName = 46
	shortName   = 30
)

// farFactor limits the ends of intervals that the axis has room for. An end that is farther away than by this factor would press all others into one point.
const farFactor = 10_000

// lanes is a figure of estimates on one axis.
type lanes struct {
	Name, Caption, Alt, Width, Height string
	// Drawn is false if no estimate is finite. Right is the end of the axis, and AxisY its height.
	Drawn         bool
	Axis          web.Axis
	Left, Right   string
	AxisY, LabelY string
	Lines         []line
	Lanes         []lane
	Legend        []key
	Undrawn       []string // estimates that are no finite numbers, in words
	// Data is nil without samples, and Estimates without marks.
	Data      *sampleData
	Estimates *marksData
}

type line struct{ Class, At string }

type lane struct {
	Name, Full, LabelY, Text string
	Baseline                 bool
	Marks                    []mark
	Samples                  *samples
}

// samples are single values with their median and its interval.
type samples struct {
	// Band is nil without an interval.
	Band *rectangle
	// Median, Top and Bottom are the coordinates of the median's line.
	Median, Top, Bottom string
	// Dots is the path of the samples, Rings are the hollow ones.
	Dots  string
	Rings []ring
}

type rectangle struct{ X, Y, Width, Height string }

type ring struct{ X, Y string }

type mark struct{ Class, Colour, Path, Whisker, Title string }

// key explains a shape or a line.
type key struct{ Class, Path, Label string }

func newLanes(l *document.Lanes, r room, p palette) *lanes {
	out := &lanes{
		Name: l.Name, Width: web.Num(figureWidth),
		Left: web.Num(figureMargin), Right: web.Num(figureWidth - figureMargin),
	}
	out.Axis, out.Drawn = web.NewAxis(extent(l), l.Unit, figureMargin, figureWidth-figureMargin)
	bottom, count, total, times := 0.0, 0, 0, 1
	for i := range l.Lanes {
		if s := l.Lanes[i].Samples; s != nil {
			for _, v := range s.Values {
				times = max(times, int(v.Order)+1)
			}
		}
	}
	var alt []string
	for _, text := range []string{l.Name, l.Caption} {
		if text != "" {
			alt = append(alt, text)
		}
	}
	for i := range l.Lanes {
		source := &l.Lanes[i]
		lane := lane{Name: web.Shorten(source.Name, longestName), Full: source.Name, LabelY: web.Num(bottom + labelDepth), Text: source.Text, Baseline: source.Baseline}
		if source.Text != "" {
			lane.Name = web.Shorten(source.Name, shortName)
			text := source.Name + ": " + source.Text
			if alt = append(alt, text); !out.Drawn {
				out.Undrawn = append(out.Undrawn, text)
			}
		}
		if s := source.Samples; s != nil {
			selection := drawnSamples(s.Values, r.dots)
			count, total = count+len(selection), total+len(s.Values)
			if out.Drawn {
				lane.Samples = out.samples(s, selection, bottom+firstSample, times)
				if out.Data == nil {
					out.Data = newSampleData(l, &out.Axis, times)
				}
				out.Data.add(source, selection, p.line(laneName(source)), bottom+firstSample, r.notes)
			}
			bottom += sampleDepth
		}
		step := min(markStep, mostHeight/float64(max(1, len(source.Marks))))
		for n := range source.Marks {
			m := &source.Marks[n]
			text := strings.Trim(source.Name+": "+m.Text, ": ")
			if !out.Drawn || !finite(m.Value) {
				out.Undrawn = append(out.Undrawn, text)
				continue
			}
			y := bottom + firstMark + step*float64(n)
			lane.Marks = append(lane.Marks, out.mark(m, y))
			out.estimate(l, i, m, y)
			alt = append(alt, text)
		}
		out.Lanes = append(out.Lanes, lane)
		bottom += firstMark + step*float64(len(source.Marks)) + 2
	}
	out.Height, out.AxisY, out.LabelY = web.Num(bottom+lanesAxis), web.Num(bottom), web.Num(bottom+15)
	out.legend(l)
	out.Caption = l.Caption
	if text := shown(count, total); out.Drawn && text != "" {
		out.Caption = strings.TrimPrefix(out.Caption+"; "+text, "; ")
	}
	for _, line := range l.Lines {
		if line.Name != "" {
			alt = append(alt, "line: "+line.Name)
		}
	}
	out.Alt = strings.Join(alt, "; ")
	return out
}

// estimate adds a mark of a lane to the values of the figure.
func (out *lanes) estimate(l *document.Lanes, row int, m *document.Mark, y float64) {
	if out.Estimates == nil {
		out.Estimates = &marksData{Name: web.Clean(l.Name), Unit: l.Unit, Log: out.Axis.Log}
		for i := range l.Lanes {
			out.Estimates.Rows = append(out.Estimates.Rows, web.Clean(l.Lanes[i].Name))
		}
	}
	group := ""
	if m.Group < len(l.Groups) {
		group = web.Clean(l.Groups[m.Group])
	}
	data := markData{Row: row, Group: group, Value: m.Value, Low: document.NumberOf(m.Low), High: document.NumberOf(m.High), X: math.Round(out.place(m.Value)*10) / 10, Y: math.Round(y*10) / 10}
	out.Estimates.Marks = append(out.Estimates.Marks, data)
}

// legend adds the lines, and explains them and the groups.
func (out *lanes) legend(l *document.Lanes) {
	for i, name := range l.Groups {
		if name != "" {
			out.Legend = append(out.Legend, key{"side full " + web.Colour(i), web.Shape(i, keyMiddle, keyMiddle, keyRadius), name})
		}
	}
	for _, source := range l.Lines {
		if !out.Drawn || !finite(source.Value) {
			continue
		}
		class := "one"
		if source.Limit {
			class = "limit"
		}
		out.Lines = append(out.Lines, line{class, out.x(source.Value)})
		if source.Name != "" {
			out.Legend = append(out.Legend, key{class, "M6 0V12", source.Name})
		}
	}
}

// mark draws an estimate at a height. An end of its interval that does not exist, or is too far away, is at the end of the axis.
func (out *lanes) mark(source *document.Mark, y float64) mark {
	m := mark{Class: "side full", Colour: web.Colour(source.Group), Path: web.Shape(source.Group, out.place(source.Value), y, markRadius), Title: source.Text}
	if source.Hollow {
		m.Class = "side"
	}
	if source.Low != nil || source.High != nil {
		low, high := out.Left, out.Right
		if source.Low != nil && !math.IsNaN(*source.Low) {
			low = out.x(*source.Low)
		}
		if source.High != nil && !math.IsNaN(*source.High) {
			high = out.x(*source.High)
		}
		m.Whisker = fmt.Sprintf("M%s %sH%s", low, web.Num(y), high)
	}
	return m
}

// samples draws samples below a height, the first of the times on top.
func (out *lanes) samples(source *document.Samples, selection []document.Sample, top float64, times int) *samples {
	s := &samples{Top: web.Num(top - lineExcess), Bottom: web.Num(top + sampleDepth + lineExcess)}
	if finite(source.Median) {
		s.Median = out.x(source.Median)
	}
	if source.Low != nil && source.High != nil && finite(*source.Low) && finite(*source.High) {
		low, high := out.place(*source.Low), out.place(*source.High)
		s.Band = &rectangle{X: web.Num(low), Width: web.Num(max(high-low, 0.5)), Y: web.Num(top - 2), Height: web.Num(sampleDepth + 4)}
	}
	var dots strings.Builder
	for _, v := range selection {
		if !finite(v.Value) {
			continue
		}
		x, y := out.x(v.Value), web.Num(top+sampleDepth*(float64(v.Order)+0.5)/float64(times))
		if v.Hollow {
			s.Rings = append(s.Rings, ring{x, y})
			continue
		}
		fmt.Fprintf(&dots, "M%s %sh0", x, y)
	}
	s.Dots = dots.String()
	return s
}

// place is the coordinate of a value, within the axis.
func (out *lanes) place(value float64) float64 {
	x := out.Axis.At(value)
	if math.IsNaN(x) { // the logarithm of a value that is not positive
		x = figureMargin
	}
	return min(max(x, figureMargin), figureWidth-figureMargin)
}

func (out *lanes) x(value float64) string { return web.Num(out.place(value)) }

// extent returns the values that the axis must have room for: all estimates and lines, and the ends of intervals that are not too far away.
func extent(l *document.Lanes) []float64 {
	var values, ends []float64
	for _, lane := range l.Lanes {
		if s := lane.Samples; s != nil {
			low, high := s.Median, s.Median
			for _, v := range s.Values {
				if finite(v.Value) {
					low, high = min(low, v.Value), max(high, v.Value)
				}
			}
			if finite(low) && finite(high) {
				values = append(values, low, high)
			}
			for _, end := range []*float64{s.Low, s.High} {
				if end != nil && finite(*end) {
					ends = append(ends, *end)
				}
			}
		}
		for _, m := range lane.Marks {
			if !finite(m.Value) {
				continue
			}
			values = append(values, m.Value)
			for _, end := range []*float64{m.Low, m.High} {
				if end != nil && finite(*end) {
					ends = append(ends, *end)
				}
			}
		}
	}
	if values == nil {
		return nil
	}
	for _, line := range l.Lines {
		if finite(line.Value) {
			values = append(values, line.Value)
		}
	}
	size := math.Abs(slices.MaxFunc(values, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }))
	low := slices.Min(values)
	for _, end := range ends {
		if math.Abs(end) <= farFactor*size && (low <= 0 || end <= 0 || end >= low/farFactor) {
			values = append(values, end)
		}
	}
	return values
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
