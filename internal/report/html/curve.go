package html

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
)

const (
	curveHeight = 180.0
	curveLeft   = 46.0
	// mostRaw is the largest number of raw values in a curve. More would be a smear and a large file.
	mostRaw = 4000
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
	Y             axis
	X             []tick
	Lines         []line
	Raw           bool
}

type line struct {
	Target, Class string
	// Path goes through the medians, Marks are their points, Dots the raw values.
	Path, Marks, Dots string
}

// newCurve is nil for metrics that are not series, and for short series.
func newCurve(m *report.Metric, label string) *curve {
	places, raw := 0, 0
	var values []float64
	for _, row := range m.Rows {
		c := &row.Cells[0]
		places = max(places, len(c.Curve))
		for _, p := range c.Curve {
			raw += len(p.Values)
			values = append(values, p.Values...)
		}
	}
	if places < fewestPlaces {
		return nil
	}
	bottom := curveHeight - 34
	y, ok := newAxis(values, m.Unit, bottom, 8)
	if !ok {
		return nil
	}
	out := &curve{
		Metric: m.Name, Width: num(figureWidth), Height: num(curveHeight), Left: num(curveLeft), Right: num(figureWidth - margin),
		Bottom: num(bottom), LabelY: num(curveHeight - 4), Label: label, Y: y, Raw: raw <= mostRaw,
	}
	x := func(place int) float64 {
		return curveLeft + 10 + (figureWidth-margin-curveLeft-20)*float64(place)/float64(places-1)
	}
	step := (places + 4) / 5
	for place := 0; place < places; place += step {
		out.X = append(out.X, tick{At: num(x(place)), Label: fmt.Sprint(place + 1)})
	}
	alt := []string{m.Name + " by " + label}
	for i, row := range m.Rows {
		c := &row.Cells[0]
		if len(c.Curve) == 0 {
			continue
		}
		l := line{Target: row.Target, Class: fmt.Sprintf("c%d d%d", i%mostColours+1, i%4+1)}
		var path, marks, dots strings.Builder
		for place, p := range c.Curve {
			letter := "L"
			if place == 0 {
				letter = "M"
			}
			fmt.Fprintf(&path, "%s%s %s", letter, num(x(place)), num(y.at(p.Median)))
			fmt.Fprintf(&marks, "M%s %sh0", num(x(place)), num(y.at(p.Median)))
			for _, v := range p.Values {
				if out.Raw {
					fmt.Fprintf(&dots, "M%s %sh0", num(x(place)), num(y.at(v)))
				}
			}
		}
		l.Path, l.Marks, l.Dots = path.String(), marks.String(), dots.String()
		out.Lines = append(out.Lines, l)
		first, last := c.Curve[0].Median, c.Curve[len(c.Curve)-1].Median
		alt = append(alt, fmt.Sprintf("%s from %s to %s", row.Target, report.Quantity(first, m.Unit), report.Quantity(last, m.Unit)))
	}
	out.Alt = strings.Join(alt, "; ")
	return out
}
