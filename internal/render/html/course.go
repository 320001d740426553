package html

import (
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Sizes of a course, in units of its drawing.
const (
	courseWidth  = 800.0
	courseHeight = 220.0
	courseLeft   = 72.0
	courseRight  = 792.0
	courseTop    = 8.0
	courseBottom = 196.0
)

// course is a figure of values in the order of their time, and their table.
type course struct {
	Name, Alt, Summary  string
	Region              string
	Width, Height       string
	Drawn               bool
	Axis                web.Axis
	Left, Right         string
	Top, Bottom, LabelY string
	Labels              []courseLabel
	Dots                []dot
	Data                courseData
	Levels              []level
	Changes             []change
	Table               *table
}

// mostLabels is the largest number of labels below a course.
const mostLabels = 5

// courseLabel is the first label of a point.
type courseLabel struct{ X, Anchor, Text string }

// dot is a point. Whisker is its interval, or empty without one.
type dot struct{ X, Y, Class, Title, Whisker string }

// change is a break with its number in the drawing.
type change struct {
	item
	Number, X, LabelX string
}

type level struct{ From, To, Y string }

func (b *builder) course(c *document.Course) *course {
	out := &course{
		Name: c.Name, Region: b.region(), Width: web.Num(courseWidth), Height: web.Num(courseHeight), Left: web.Num(courseLeft), Right: web.Num(courseRight),
		Top: web.Num(courseTop), Bottom: web.Num(courseBottom), LabelY: web.Num(courseBottom + 17),
	}
	var values []float64
	var alt []string
	if c.Name != "" {
		alt = append(alt, c.Name)
	}
	for i := range c.Points {
		if finite(c.Points[i].Value) {
			values = append(values, c.Points[i].Value)
		}
	}
	for i, b := range c.Breaks {
		place := "Change"
		if b.Index < len(c.Points) {
			place += " before " + strings.Join(c.Points[b.Index].Labels, " ")
		}
		found := change{item: item{span: span{Text: place + ": " + b.Text}, Lines: b.Lines}, Number: strconv.Itoa(i + 1)}
		out.Changes = append(out.Changes, found)
		alt = append(alt, found.Text)
		for _, v := range []float64{b.Before, b.After} {
			if finite(v) && values != nil {
				values = append(values, v)
			}
		}
	}
	intervals := intervalsOf(c)
	for _, ci := range intervals {
		if ci != nil && values != nil {
			values = append(values, ci.Low, ci.High)
		}
	}
	out.Alt = strings.Join(append(alt, "the table has the values"), "; ")
	if out.Axis, out.Drawn = web.NewAxis(values, c.Unit, courseBottom, courseTop); out.Drawn {
		out.draw(c, intervals)
	}
	out.Table, out.Summary = b.table(c.Table()), wording.Counted(len(c.Points), "value")
	return out
}

// intervalsOf are the finite intervals of the points.
func intervalsOf(c *document.Course) []*document.PointInterval {
	intervals := make([]*document.PointInterval, len(c.Points))
	if c.Interval == nil {
		return intervals
	}
	for i := range intervals {
		if ci := c.Interval(i); ci != nil && finite(ci.Low) && finite(ci.High) {
			intervals[i] = ci
		}
	}
	return intervals
}

// draw adds a dot with its interval for each point, hollow for a point with a remark, and the levels between the breaks.
func (out *course) draw(c *document.Course, intervals []*document.PointInterval) {
	out.Data.Name, out.Data.Unit = web.Clean(c.Name), c.Unit
	coordinate := func(place float64) float64 {
		return courseLeft + place/float64(len(c.Points))*(courseRight-courseLeft)
	}
	x := func(place float64) string { return web.Num(coordinate(place)) }
	for i := range c.Points {
		p := &c.Points[i]
		if !finite(p.Value) {
			continue
		}
		title := strings.Join(append(append([]string{}, p.Labels...), p.Text), ", ")
		d := dot{X: x(float64(i) + 0.5), Y: web.Num(out.Axis.At(p.Value)), Class: "dot", Title: title}
		if p.Remark != "" {
			d.Class, d.Title = "dot marked", title+"; "+p.Remark
		}
		if ci := intervals[i]; ci != nil {
			d.Whisker = "M" + d.X + " " + web.Num(out.Axis.At(ci.Low)) + "V" + web.Num(out.Axis.At(ci.High))
			d.Title += "; " + ci.Text
		}
		out.Dots, out.Data.Values = append(out.Dots, d), append(out.Data.Values, p.Value)
	}
	out.label(c, x)
	start := 0.0
	add := func(end, value float64) {
		if finite(value) {
			out.Levels = append(out.Levels, level{x(start), x(end), web.Num(out.Axis.At(value))})
		}
		start = end
	}
	for i, b := range c.Breaks {
		out.Changes[i].X, out.Changes[i].LabelX = x(float64(b.Index)), web.Num(coordinate(float64(b.Index))+4)
		add(float64(b.Index), b.Before)
	}
	if n := len(c.Breaks); n > 0 {
		add(float64(len(c.Points)), c.Breaks[n-1].After)
	}
}

// label adds the first labels of the first and of the last point, and of some between them.
func (out *course) label(c *document.Course, x func(float64) string) {
	last := len(c.Points) - 1
	count := max(min(2, last+1), min(mostLabels, (last+2)/2))
	for n := range count {
		index, l := 0, courseLabel{X: out.Left}
		switch {
		case n > 0 && n == count-1:
			index, l = last, courseLabel{X: out.Right, Anchor: "end"}
		case n > 0:
			index = n * last / (count - 1)
			l = courseLabel{X: x(float64(index) + 0.5), Anchor: "middle"}
		}
		if labels := c.Points[index].Labels; len(labels) > 0 {
			l.Text = labels[0]
			out.Labels = append(out.Labels, l)
		}
	}
}
