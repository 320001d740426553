package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
	"github.com/touchstone-bench/touchstone/internal/render/web"
)

// Sizes of a drawing, in its units.
const (
	svgWidth  = 720.0
	svgNames  = 200.0 // the width of the names of rows
	svgRow    = 20.0
	svgHeight = 220.0 // of the area of lines
	svgHead   = 42.0
	svgAxis   = 40.0
	svgMargin = 12.0
	svgLegend = 16.0
)

// svgColours are distinct also for people with impaired colour vision (Okabe and Ito).
var svgColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"}

// writeSVG writes the figures of a document as one drawing, below each other. It needs no style sheet, font or network, so every program with SVG 1.1 shows it.
func writeSVG(w io.Writer, d *document.Document, _ Options) error {
	charts, err := figures(d, "SVG")
	if err != nil {
		return err
	}
	s := drawing{bottom: svgMargin}
	for _, note := range d.Notes {
		s.bottom += svgRow
		s.text(svgMargin, s.bottom, "start", "#b00000", note.Text)
	}
	for i := range charts {
		s.chart(&charts[i])
	}
	_, err = fmt.Fprintf(w, "%s<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %[2]s %[3]s\" font-family=\"sans-serif\" font-size=\"11\">\n<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s</svg>\n",
		xml.Header, web.Num(svgWidth), web.Num(s.bottom+svgMargin), escaped(d.Title), s.out.String())
	return err
}

// drawing is the elements so far, and their end.
type drawing struct {
	out    strings.Builder
	bottom float64
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(comment(text))) // a builder does not fail
	return out.String()
}

func (s *drawing) text(x, y float64, anchor, fill, text string) {
	fmt.Fprintf(&s.out, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", web.Num(x), web.Num(y), anchor, fill, escaped(text))
}

func (s *drawing) path(stroke, width, d string) {
	fmt.Fprintf(&s.out, "<path d=\"%s\" stroke=\"%s\" stroke-width=\"%s\" fill=\"none\"/>\n", d, stroke, width)
}

// chart draws a chart below the end.
func (s *drawing) chart(c *chart.Chart) {
	top := s.bottom + svgHead
	s.text(svgMargin, s.bottom+18, "start", "#000000", web.Shorten(c.Title, 110))
	s.text(svgMargin, s.bottom+33, "start", "#555555", web.Shorten(c.Caption, 120))
	low, high := c.Extent()
	if c.Rows != nil {
		s.rows(c, top, low, high)
	} else {
		s.lines(c, top, low, high)
	}
	for i := range c.Series {
		if c.Series[i].Name != "" {
			fmt.Fprintf(&s.out, "<circle cx=\"%s\" cy=\"%s\" r=\"4\" fill=\"%s\"/>\n", web.Num(svgNames), web.Num(s.bottom-4), colour(i))
			s.text(svgNames+svgMargin, s.bottom, "start", "#000000", web.Shorten(c.Series[i].Name, 80))
			s.bottom += svgLegend
		}
	}
	s.bottom += svgMargin
}

func colour(series int) string { return svgColours[series%len(svgColours)] }

// rows draws a row for each name, with values from left to right.
func (s *drawing) rows(c *chart.Chart, top, low, high float64) {
	bottom := top + svgRow*float64(len(c.Rows))
	axis, ok := web.AxisOver(low, high, c.Unit, svgNames, svgWidth-svgMargin, c.Log)
	if ok {
		for _, tick := range axis.Ticks {
			s.path("#dddddd", "1", fmt.Sprintf("M%s %sV%s", tick.At, web.Num(top), web.Num(bottom)))
			fmt.Fprintf(&s.out, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>\n", tick.At, web.Num(bottom+14), tick.Anchor, escaped(tick.Label))
		}
		for _, l := range c.Lines {
			if chart.Finite(l.Value) && (!c.Log || l.Value > 0) {
				s.path("#555555", "1", fmt.Sprintf("M%s %sV%s", web.Num(axis.At(l.Value)), web.Num(top), web.Num(bottom)))
			}
		}
	}
	for i, name := range c.Rows {
		s.text(svgNames-svgMargin, top+svgRow*float64(i)+14, "end", "#000000", web.Shorten(name, 32))
	}
	ends := map[[2]float64]float64{} // of the pieces so far, by row and sign
	for i := range c.Series {
		for _, p := range c.Series[i].Points {
			y := top + svgRow*(p.Place+0.5)
			switch {
			case !ok:
				s.text(svgNames, y+4, "start", "#555555", p.Text)
			case c.Stacked:
				key := [2]float64{p.Place, math.Copysign(1, p.Value)}
				start, end := axis.At(ends[key]), axis.At(ends[key]+p.Value)
				ends[key] += p.Value
				fmt.Fprintf(&s.out, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"12\" fill=\"%s\"><title>%s</title></rect>\n", web.Num(min(start, end)), web.Num(y-6), web.Num(math.Abs(end-start)), colour(i), escaped(p.Text))
			default:
				s.interval(&axis, p, func(x float64) string { return web.Num(x) + " " + web.Num(y) }, colour(i))
				s.dot(axis.At(p.Value), y, colour(i), p.Text)
			}
		}
	}
	s.text((svgNames+svgWidth)/2, bottom+30, "middle", "#000000", c.Label())
	s.bottom = bottom + svgAxis + svgLegend
}

// interval draws a line between the ends of an interval. point spells a place on the axis of values.
func (s *drawing) interval(axis *web.Axis, p chart.Point, point func(place float64) string, stroke string) {
	if p.Low != nil && p.High != nil && chart.Finite(*p.Low) && chart.Finite(*p.High) {
		s.path(stroke, "2", "M"+point(axis.At(*p.Low))+"L"+point(axis.At(*p.High)))
	}
}

func (s *drawing) dot(x, y float64, fill, text string) {
	fmt.Fprintf(&s.out, "<circle cx=\"%s\" cy=\"%s\" r=\"2.5\" fill=\"%s\"><title>%s</title></circle>\n", web.Num(x), web.Num(y), fill, escaped(text))
}

// lines draws lines above a horizontal axis.
func (s *drawing) lines(c *chart.Chart, top, low, high float64) {
	const left = svgNames / 2
	bottom := top + svgHeight
	first, last := math.Inf(1), math.Inf(-1)
	for _, series := range c.Series {
		for _, p := range series.Points {
			first, last = min(first, p.Place), max(last, p.Place)
		}
	}
	y, ok := web.AxisOver(low, high, c.Unit, bottom, top, c.Log)
	x, found := web.AxisOver(first, last, "", left, svgWidth-svgMargin, false)
	s.bottom = bottom + svgAxis + svgLegend
	if !ok || !found {
		s.text(left, top+svgRow, "start", "#555555", "The values have no common axis.")
		return
	}
	for _, tick := range y.Ticks {
		fmt.Fprintf(&s.out, "<path d=\"M%s %sH%s\" stroke=\"#dddddd\"/><text x=\"%s\" y=\"%[2]s\" text-anchor=\"end\">%[5]s</text>\n", web.Num(left), tick.At, web.Num(svgWidth-svgMargin), web.Num(left-4), escaped(tick.Label))
	}
	for _, tick := range x.Ticks {
		fmt.Fprintf(&s.out, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>\n", tick.At, web.Num(bottom+14), tick.Anchor, escaped(tick.Label))
	}
	for i := range c.Series {
		letter, d := "M", ""
		for _, p := range c.Series[i].Points {
			d += letter + web.Num(x.At(p.Place)) + " " + web.Num(y.At(p.Value))
			letter = "L"
		}
		s.path(colour(i), "1.5", d)
		if len(c.Series[i].Points) <= 30 {
			for _, p := range c.Series[i].Points {
				s.interval(&y, p, func(height float64) string { return web.Num(x.At(p.Place)) + " " + web.Num(height) }, colour(i))
				s.dot(x.At(p.Place), y.At(p.Value), colour(i), p.Text)
			}
		}
	}
	s.text((left+svgWidth)/2, bottom+30, "middle", "#000000", c.Across)
}
