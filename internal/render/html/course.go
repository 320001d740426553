package html

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
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
	First, Last         string // the first labels of the first and the last point
	Dots                []dot
	Data                courseData
	Levels              []level
	Breaks              []string // the places of the breaks
	Changes             []item
	Table               *table
}

type dot struct{ X, Y, Class, Title string }

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
	for _, b := range c.Breaks {
		place := "Change"
		if b.Index < len(c.Points) {
			place += " before " + strings.Join(c.Points[b.Index].Labels, " ")
		}
		change := item{span: span{Text: place + ": " + b.Text}, Lines: b.Lines}
		out.Changes = append(out.Changes, change)
		alt = append(alt, change.Text)
		for _, v := range []float64{b.Before, b.After} {
			if finite(v) && values != nil {
				values = append(values, v)
			}
		}
	}
	out.Alt = strings.Join(append(alt, "the table has the values"), "; ")
	if out.Axis, out.Drawn = web.NewAxis(values, c.Unit, courseBottom, courseTop); out.Drawn {
		out.draw(c)
	}
	out.Table, out.Summary = b.table(c.Table()), quantity.Counted(len(c.Points), "value")
	return out
}

// draw adds a dot for each point, hollow for a point with a remark, and the levels between the breaks.
func (out *course) draw(c *document.Course) {
	out.Data.Name, out.Data.Unit = web.Clean(c.Name), c.Unit
	x := func(place float64) string {
		return web.Num(courseLeft + place/float64(len(c.Points))*(courseRight-courseLeft))
	}
	for i := range c.Points {
		p := &c.Points[i]
		if !finite(p.Value) {
			continue
		}
		title := strings.Join(append(append([]string{}, p.Labels...), p.Text), ", ")
		d := dot{x(float64(i) + 0.5), web.Num(out.Axis.At(p.Value)), "dot", title}
		if p.Remark != "" {
			d.Class, d.Title = "dot marked", title+"; "+p.Remark
		}
		out.Dots, out.Data.Values = append(out.Dots, d), append(out.Data.Values, p.Value)
	}
	first, last := c.Points[0].Labels, c.Points[len(c.Points)-1].Labels
	if len(first) > 0 && len(last) > 0 {
		if out.First = first[0]; len(c.Points) > 1 {
			out.Last = last[0]
		}
	}
	start := 0.0
	add := func(end, value float64) {
		if finite(value) {
			out.Levels = append(out.Levels, level{x(start), x(end), web.Num(out.Axis.At(value))})
		}
		start = end
	}
	for _, b := range c.Breaks {
		out.Breaks = append(out.Breaks, x(float64(b.Index)))
		add(float64(b.Index), b.Before)
	}
	if n := len(c.Breaks); n > 0 {
		add(float64(len(c.Points)), c.Breaks[n-1].After)
	}
}
