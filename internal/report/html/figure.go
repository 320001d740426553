package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Sizes of drawings in their own units. Their columns have about the same width in CSS pixels, so that text keeps its size, on a
// phone too.
const (
	figureWidth = 320.0
	margin      = 8.0
	laneHeight  = 42.0
	laneTop     = 18.0 // of the points, below the lane's label
	laneDepth   = 18.0 // of the points
	axisHeight  = 24.0
)

// longestName is the longest name of a target that fits into a lane.
const longestName = 30

// strip is the plot of a metric: a lane for each target.
type strip struct {
	Metric, Better string
	Series         bool
	// Only counts the targets with the metric, if some do not have it. Shown counts the points, if some are left out.
	Only, Shown string
	// Alt is the drawing in words.
	Alt           string
	Width, Height string
	AxisY, LabelY string
	Axis          web.Axis
	Drawn         bool
	Lanes         []lane
}

type lane struct {
	Name, Full, Value string
	Baseline          bool
	LabelY            string
	Band              *band
	// MedianX, Top and Bottom are the coordinates of the median's line.
	MedianX, Top, Bottom string
	// Dots is the path of the points, Rings are the points of disturbed trials.
	Dots  string
	Rings []ring
}

type band struct{ X, Width, Y, Height string }

type ring struct{ X, Y string }

func newStrip(m *analysis.Metric, limit int) strip {
	var values []float64
	blocks := 1
	for _, row := range m.Rows {
		c := &row.Cells[0]
		for _, p := range c.Points {
			blocks = max(blocks, p.Block+1)
		}
		if c.Summary != nil {
			values = append(values, c.Summary.Min, c.Summary.Max)
		}
		if c.Summary != nil && c.Summary.CI != nil {
			values = append(values, c.Summary.CI.Lo, c.Summary.CI.Hi)
		}
	}
	rows := slices.DeleteFunc(slices.Clone(m.Rows), func(r analysis.Row) bool { return r.Cells[0].Absent })
	height := float64(len(rows)) * laneHeight
	s := strip{
		Metric: m.Name, Better: string(m.Better) + " is better", Series: m.Series, Alt: alternative(m),
		Width: web.Num(figureWidth), Height: web.Num(height + axisHeight), AxisY: web.Num(height), LabelY: web.Num(height + 15),
	}
	s.Axis, s.Drawn = web.NewAxis(values, m.Unit, margin, figureWidth-margin)
	if len(rows) < len(m.Rows) {
		s.Only = fmt.Sprintf("on %d of %d targets", len(rows), len(m.Rows))
	}
	count, total := 0, 0
	for i, r := range rows {
		points := drawnDots(r.Cells[0].Points, limit)
		count, total = count+len(points), total+len(r.Cells[0].Points)
		s.Lanes = append(s.Lanes, newLane(&s, &r, m, points, float64(i)*laneHeight, blocks))
	}
	if s.Drawn {
		s.Shown = shown(count, total, "points")
	}
	return s
}

func newLane(s *strip, r *analysis.Row, m *analysis.Metric, points []analysis.Point, y float64, blocks int) lane {
	top := y + laneTop
	c := &r.Cells[0]
	l := lane{
		Name: web.Shorten(r.Target, longestName), Full: r.Target, Baseline: c.Baseline, LabelY: web.Num(y + 13),
		Top: web.Num(top - 3), Bottom: web.Num(top + laneDepth + 3),
	}
	if c.Summary == nil {
		l.Value = "no value"
		return l
	}
	l.Value = quantity.Median(c.Summary, m.Unit)
	if !s.Drawn {
		return l
	}
	l.MedianX = web.Num(s.Axis.At(c.Summary.Median))
	if ci := c.Summary.CI; ci != nil {
		lo, hi := s.Axis.At(ci.Lo), s.Axis.At(ci.Hi)
		l.Band = &band{X: web.Num(lo), Width: web.Num(max(hi-lo, 0.5)), Y: web.Num(top - 2), Height: web.Num(laneDepth + 4)}
	}
	var dots strings.Builder
	for _, p := range points {
		x, py := web.Num(s.Axis.At(p.Value)), web.Num(top+laneDepth*(float64(p.Block)+0.5)/float64(blocks))
		if p.Disturbed() {
			l.Rings = append(l.Rings, ring{x, py})
			continue
		}
		fmt.Fprintf(&dots, "M%s %sh0", x, py)
	}
	l.Dots = dots.String()
	return l
}

// alternative is the plot of a metric in words.
func alternative(m *analysis.Metric) string {
	parts := []string{m.Name}
	for _, row := range m.Rows {
		c := &row.Cells[0]
		s := row.Target + ": "
		switch {
		case c.Absent:
			continue
		case c.Summary == nil:
			s += "no value"
		case c.Comparison == nil:
			s += quantity.Median(c.Summary, m.Unit)
		default:
			s += fmt.Sprintf("%s, %s", quantity.Median(c.Summary, m.Unit), factorText(c.Comparison, m.Metric))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// factorText is the factor with a verdict that is no difference: "1.01 × slower, no difference shown".
func factorText(c *stats.Comparison, m result.Metric) string {
	factor, word := quantity.Ratio(c, m), quantity.VerdictWord(c.Verdict, m)
	switch {
	case factor == quantity.None:
		return word
	case c.Differs():
		return strings.Join(slices.DeleteFunc([]string{factor, quantity.Parts(c, m), quantity.Tier(c)}, func(s string) bool { return s == "" }), ", ")
	}
	return factor + ", " + word
}

// level is the strength of the colour of a shown difference, 1 to 5, by the logarithm of its ratio.
func level(ratio float64) int {
	size := max(ratio, 1/ratio)
	for i, limit := range []float64{1.1, 1.5, 4, 20} {
		if size < limit {
			return i + 1
		}
	}
	return 5
}

// heat is the class of a comparison in the matrix.
func heat(c *stats.Comparison) string {
	switch c.Verdict {
	case stats.Faster:
		return fmt.Sprintf("better b%d", level(c.DecidingRatio()))
	case stats.Slower:
		return fmt.Sprintf("worse w%d", level(c.DecidingRatio()))
	case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Mixed, stats.Negligible, stats.Withheld:
	}
	return "neutral"
}

const (
	curveHeight = 180.0
	curveLeft   = 46.0
	// fewestPlaces is the length of the shortest series with a curve.
	fewestPlaces = 3
)

// curve is a series by the place of its values: a line through the medians of each target.
type curve struct {
	Metric, Alt   string
	Width, Height string
	Left, Right   string
	Bottom        string
	LabelY, Label string
	Y             web.Axis
	X             []web.Tick
	Lines         []line
	// Faint describes the faint dots. Shown counts the places, if some are left out.
	Faint, Shown string
}

type line struct {
	Target, Class string
	// Path goes through the medians, Marks are their points, Dots the raw values or their extremes.
	Path, Marks, Dots string
	// Fit is the path of the fitted line, Knee the path of the mark at its knee. Trend describes both.
	Fit, Knee, Trend string
}

// newCurve is nil for metrics that are not series, and for short series.
func newCurve(m *analysis.Metric, label string, r room) *curve {
	places := 0
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, row := range m.Rows {
		c := &row.Cells[0]
		places = max(places, len(c.Curve))
		for _, p := range c.Curve {
			lo, hi = min(lo, slices.Min(p.Values)), max(hi, slices.Max(p.Values))
		}
	}
	if places < fewestPlaces {
		return nil
	}
	bottom := curveHeight - 34
	y, ok := web.NewAxis([]float64{lo, hi}, m.Unit, bottom, 8)
	if !ok {
		return nil
	}
	out := &curve{
		Metric: m.Name, Width: web.Num(figureWidth), Height: web.Num(curveHeight), Left: web.Num(curveLeft), Right: web.Num(figureWidth - margin),
		Bottom: web.Num(bottom), LabelY: web.Num(curveHeight - 4), Label: label, Y: y,
		Faint: "each value faint",
	}
	isWhole := rawValues(m) <= r.raw
	if !isWhole {
		out.Faint = "least and largest values faint"
	}
	x := func(place int) float64 {
		return curveLeft + 10 + (figureWidth-margin-curveLeft-20)*float64(place)/float64(places-1)
	}
	step := (places + 4) / 5
	for place := 0; place < places; place += step {
		out.X = append(out.X, web.Tick{At: web.Num(x(place)), Label: fmt.Sprint(place + 1)})
	}
	alt := []string{m.Name + " by " + label}
	count, total := 0, 0
	for i, row := range m.Rows {
		c := &row.Cells[0]
		if len(c.Curve) == 0 {
			continue
		}
		l := line{Target: row.Target, Class: fmt.Sprintf("%s d%d", web.Colour(i), i%4+1)}
		var path, marks, dots strings.Builder
		selection := drawnPlaces(c.Curve, r.places)
		count, total = count+len(selection), total+len(c.Curve)
		for _, place := range selection {
			median := c.Curve[place].Median
			letter := "L"
			if place == 0 {
				letter = "M"
			}
			fmt.Fprintf(&path, "%s%s %s", letter, web.Num(x(place)), web.Num(y.At(median)))
			if len(selection) == len(c.Curve) {
				fmt.Fprintf(&marks, "M%s %sh0", web.Num(x(place)), web.Num(y.At(median)))
			}
		}
		for _, v := range faint(c.Curve, isWhole, r.places) {
			fmt.Fprintf(&dots, "M%s %sh0", web.Num(x(v.place)), web.Num(y.At(v.value)))
		}
		l.Path, l.Marks, l.Dots = path.String(), marks.String(), dots.String()
		l.fitted(c, m, x, y, selection)
		out.Lines = append(out.Lines, l)
		first, last := c.Curve[0].Median, c.Curve[len(c.Curve)-1].Median
		alt = append(alt, fmt.Sprintf("%s from %s to %s", row.Target, quantity.Text(first, m.Unit), quantity.Text(last, m.Unit)))
	}
	out.Alt, out.Shown = strings.Join(alt, "; "), shown(count, total, "places")
	return out
}

// placeValue is a value at a place.
type placeValue struct {
	place int
	value float64
}

// faint returns the faint dots of a line: all raw values, or the least and the largest one of each column.
func faint(places []analysis.Place, isWhole bool, limit int) []placeValue {
	var values []placeValue
	for i, p := range places {
		for _, v := range p.Values {
			values = append(values, placeValue{i, v})
		}
	}
	if isWhole {
		return values
	}
	columns := min(len(places), max(1, limit/columnPlaces))
	var selection []placeValue
	for start := 0; start < len(values); {
		column := values[start].place * columns / len(places)
		minimum, maximum, end := values[start], values[start], start
		for ; end < len(values) && values[end].place*columns/len(places) == column; end++ {
			if v := values[end]; v.value < minimum.value {
				minimum = v
			} else if v.value > maximum.value {
				maximum = v
			}
		}
		selection = append(selection, minimum)
		if maximum != minimum {
			selection = append(selection, maximum)
		}
		start = end
	}
	return selection
}

// fitted adds the fitted line. On a logarithmic axis a straight line is a curve, so it has as many points as the line of the medians.
func (l *line) fitted(c *analysis.Cell, m *analysis.Metric, x func(place int) float64, y web.Axis, places []int) {
	t := c.Trend
	if t == nil {
		return
	}
	if k := t.Knee; k != nil { // the corner of the line
		places = append(slices.Clone(places), int(math.Floor(k.At))-1, int(math.Ceil(k.At))-1)
		slices.Sort(places)
		places = slices.Compact(places)
	}
	var path strings.Builder
	letter := "M"
	for _, place := range places {
		value := t.Fitted(float64(place + 1))
		if y.Log && value <= 0 {
			letter = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%s %s", letter, web.Num(x(place)), web.Num(y.At(value)))
		letter = "L"
	}
	l.Fit = path.String()
	if k := t.Knee; k != nil && (!y.Log || k.Value > 0) {
		height := y.At(k.Value)
		l.Knee = fmt.Sprintf("M%s %sV%s", web.Num(x(int(math.Round(k.At))-1)), web.Num(height-7), web.Num(height+7))
	}
	l.Trend = fmt.Sprintf("%s per %s; %s", quantity.Slope(t, m.Unit), m.Trend, finding.TrendNote(t, m.Unit))
}
