package history

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/touchstone-bench/touchstone/internal/quantity"
)

// pageText is the template of the page. The page needs no script and no network.
//
//go:embed history.html
var pageText string

var page = template.Must(template.New("history").Parse(pageText))

// The size of a figure and of the plot in it. The template has the same numbers.
const (
	left, right = 90, 786
	top, bottom = 14, 186
)

type (
	pageSeries struct {
		*Series
		Dots    []dot
		Levels  []level
		Breaks  []string // the places of the changes
		Lo, Hi  tick
		Rows    []row
		Changed []changed
	}
	dot   struct{ X, Y, Class, Title string }
	level struct{ X1, X2, Y string }
	tick  struct{ Y, Text string }
	row   struct{ Started, Run, Value, Trials, Remark string }
	// changed is a change in words with its lines.
	changed struct {
		Text  string
		Lines []string
	}
)

// HTML writes the history as one page with a figure for each series: a dot for each run, hollow for a run with a remark, and the level between changes as a line.
func (h *History) HTML(w io.Writer) error {
	data := struct {
		Metric string
		Notes  []string
		Series []pageSeries
	}{Metric: h.Metric, Notes: h.Notes}
	for i := range h.Series {
		data.Series = append(data.Series, h.Series[i].figure())
	}
	return page.Execute(w, data)
}

// figure places the points and the levels of a series.
func (s *Series) figure() pageSeries {
	lo, hi := s.extent()
	number := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	// x is the left edge of the column of a run, and y the height of a value.
	x := func(i float64) string { return number(left + i/float64(len(s.Points))*(right-left)) }
	y := func(v float64) string {
		share := 0.5
		if hi > lo {
			share = (v - lo) / (hi - lo)
		}
		return number(bottom - share*(bottom-top))
	}
	f := pageSeries{Series: s, Lo: tick{y(lo), quantity.Text(lo, s.Metric.Unit)}, Hi: tick{y(hi), quantity.Text(hi, s.Metric.Unit)}}
	if hi == lo {
		f.Hi = tick{}
	}
	for i, p := range s.Points {
		value := quantity.Text(p.Value, s.Metric.Unit)
		d := dot{x(float64(i) + 0.5), y(p.Value), "dot", fmt.Sprintf("%s, %s: %s", p.Run, p.StartedText(), value)}
		remark := p.Remark()
		if remark != "" {
			d.Class, d.Title = "dot marked", d.Title+"; "+remark
		}
		f.Dots = append(f.Dots, d)
		f.Rows = append(f.Rows, row{p.StartedText(), p.Run, value, fmt.Sprint(p.Trials), remark})
	}
	from := 0
	for _, c := range s.Changes {
		f.Levels = append(f.Levels, level{x(float64(from)), x(float64(c.At)), y(c.Before)})
		f.Breaks = append(f.Breaks, x(float64(c.At)))
		f.Changed = append(f.Changed, changed{"Before run " + s.Points[c.At].Run + ": " + s.Describe(c), c.lines()})
		from = c.At
	}
	if n := len(s.Changes); n > 0 {
		f.Levels = append(f.Levels, level{x(float64(from)), x(float64(len(s.Points))), y(s.Changes[n-1].After)})
	}
	return f
}
