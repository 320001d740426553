package document

import (
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Lanes is a figure of estimates on one axis: a lane for each row, with a mark for each estimate, or with samples. Its numbers are in the
// document's tables too, so that a format without drawings loses nothing.
type Lanes struct {
	// Name is the quantity on the axis, and Caption the rest of the description.
	Name, Caption string
	Unit          result.Unit
	// Lines are places with a meaning, such as the ratio 1 or a margin.
	Lines []Line
	// Groups are the kinds of marks, which have their own shape and colour.
	Groups []string
	Lanes  []Lane
}

// Line is a place on the axis of a figure.
type Line struct {
	Name  string
	Value float64
	// Limit is set for a bound of a decision.
	Limit bool
}

// Lane is a row of a figure.
type Lane struct {
	Name string
	// Text is the value of the lane in words, at its end. It may be empty.
	Text string
	// Baseline is set for the row that the other rows are compared with.
	Baseline bool
	Marks    []Mark
	// Samples may be nil.
	Samples *Samples
}

// Mark is an estimate. Low and High are the ends of its interval; nil is an end that does not exist.
type Mark struct {
	Group     int
	Value     float64
	Low, High *float64
	// Hollow is set for an estimate that shows no difference.
	Hollow bool
	// Text says the same in words.
	Text string
}

// Samples are single values in the order of time, with their median and its interval. A renderer may leave out samples of many, but no
// extreme value, and states their number.
type Samples struct {
	Values    []Sample
	Median    float64
	Low, High *float64
}

// Quantiles are the number of the finite values, and their quantiles from the least to the largest one in a number of equal steps. Fewer than two values have
// no quantiles.
func (s *Samples) Quantiles(steps int) (int, []float64) {
	var values []float64
	for _, v := range s.Values {
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			values = append(values, v.Value)
		}
	}
	if len(values) < 2 {
		return len(values), nil
	}
	slices.Sort(values)
	var list []float64
	for i := range steps + 1 {
		list = append(list, stats.Quantile(values, float64(i)/float64(steps)))
	}
	return len(values), list
}

// Sample is a single value.
type Sample struct {
	Value float64
	// Order is the place in time. Samples of several lanes with the same order are of the same time.
	Order int32
	// Hollow is set for a value with a doubt, such as one of a disturbed trial.
	Hollow bool
	// Note is the conditions of the value and the reason of a doubt, in words. It may be empty.
	Note string
}

// Plot is a figure of lines above a horizontal axis, such as time. Its panels have the same lines and the same axis of values.
type Plot struct {
	Name, Caption string
	// Unit is the unit of the values. Linear forbids a logarithmic axis.
	Unit   result.Unit
	Linear bool
	// Axis names the horizontal axis. Its unit is Across, or none for places: whole numbers from 1 on.
	Axis   string
	Across result.Unit
	// Names are the names of the lines.
	Names  []string
	Panels []Panel
}

// Panel is a drawing of a plot.
type Panel struct {
	// Name may be empty for the only panel. Text says the panel in words.
	Name, Text string
	// End is the end of the horizontal axis. For places it is their number.
	End float64
	// Lines are in the order of the plot's names. nil is a line that does not exist.
	Lines []*Curve
	// Bands are parts of the horizontal axis with names, in their order.
	Bands []Band
}

// Curve is a line through values.
type Curve struct {
	// At are the places of Values on the horizontal axis, in their order.
	At, Values []float64
	// Intervals has the interval of each value, or nil for a value without one. It may be nil.
	Intervals []*stats.Interval
	// Spread has the single values behind each value. It may be nil.
	Spread [][]float64
	// Fit is a line of regression at the same places. It may be nil. Knee is the corner of it.
	Fit  []float64
	Knee *Knee
}

// Knee is a corner of a line.
type Knee struct{ At, Value float64 }

// Band is a part of a horizontal axis.
type Band struct {
	Name       string
	Start, End float64
}

// Bars is stacked bars in one scale: a bar for each row, with a piece for each part. Their section has their name.
type Bars struct {
	Caption string
	Unit    result.Unit
	Parts   []string
	Bars    []Bar
}

// Name is the names of the parts of a piece.
func (b *Bars) Name(p Piece) string { return strings.Join(b.Parts[p.First:p.Last+1], " + ") }

// Bar is a sum of pieces.
type Bar struct {
	Name string
	// Text is the whole in words.
	Text string
	// Whole is the place of a mark, for a whole that is not the sum of its pieces. It may be nil.
	Whole *float64
	// First is set for the first bar of a group.
	First  bool
	Pieces []Piece
}

// Piece is a part of a bar, or several adjacent parts together. A negative piece is left of zero.
type Piece struct {
	// First and Last are indices of parts.
	First, Last int
	Value       float64
	// Faint is set for a value that may be zero.
	Faint bool
	// Text says the piece in words.
	Text string
	// Steps are pieces within the piece, which it includes. Their parts have no meaning.
	Steps []Piece
}

// Course is a figure of values in the order of their time, with the breaks between them.
type Course struct {
	Name string
	Unit result.Unit
	// Columns are the headings of the labels, of the value and of the remark. They may be absent.
	Columns []string
	Points  []Point
	// Interval returns the interval of the value of a point, or nil without one. Only a page calls it, because it may take time. It may be nil.
	Interval func(index int) *PointInterval
	Breaks   []Break
}

// PointInterval is the interval of a value. Text says it in words.
type PointInterval struct {
	Low, High float64
	Text      string
}

// Table is the course as a table, for a format without drawings or beside one.
func (c *Course) Table() *Table {
	t := &Table{Listing: true}
	add := func(texts []string) {
		var row []Cell
		for _, text := range texts {
			row = append(row, Cell{{Text: text}})
		}
		t.Rows = append(t.Rows, row)
	}
	add(c.Columns)
	for _, p := range c.Points {
		add(append(slices.Clone(p.Labels), p.Text, p.Remark))
	}
	if c.Columns == nil && len(c.Points) > 0 {
		t.Rows[0] = make([]Cell, len(t.Rows[1]))
	}
	return t
}

// Point is a value of a course.
type Point struct {
	// Labels say when and where the value is from.
	Labels []string
	Value  float64
	// Text is the value in words. Remark is a reason to look at it, and may be empty.
	Text, Remark string
}

// Break is a change of the level before the point with an index, in words.
type Break struct {
	Index int
	// Before and After are the levels.
	Before, After float64
	Text          string
	Lines         []string
}
