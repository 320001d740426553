package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// key is the mark of a run: a shape in a colour. Either of them identifies the run of a small report.
type key struct{ Class, Path string }

// The key of a run in a legend: the middle and the size of its shape.
const (
	keyMiddle = 6.0
	keyRadius = 4.2
)

// keyOf is the key of the run at a place.
func keyOf(run int) key {
	return key{"side full " + web.Colour(run), web.Shape(run, keyMiddle, keyMiddle, keyRadius)}
}

// sides is the plot of a metric in several runs: a lane for each target, a mark with its interval for each run.
type sides struct {
	Metric, Caption, Alt         string
	Width, Height, AxisY, LabelY string
	Axis                         web.Axis
	// One is the coordinate of the ratio 1, empty for absolute values. Limit is the coordinate of a margin. It may be empty.
	One, Limit string
	Lanes      []sideLane
	Legend     []runHead
}

type sideLane struct {
	Name, Full, LabelY string
	Marks              []mark
}

type mark struct{ Class, Path, Colour, Whisker, Title string }

// Sizes of a lane of several runs.
const (
	sideTop    = 20.0 // of the first mark, below the lane's label
	sideStep   = 11.0 // from mark to mark
	sideRadius = 3.6
)

// estimate is the value of a mark.
type estimate struct {
	value float64
	ci    *stats.Interval
	// shown is false for a hollow mark.
	shown bool
	text  string
}

// newSides gives the plot of the ratios of a metric, and a plot of absolute values for each machine with several runs.
// Absolute values of different machines share no axis.
func newSides(r *report.Report, b *analysis.Benchmark, m *analysis.Metric) []sides {
	var list []sides
	var runs []int
	for i := range r.Runs {
		runs = append(runs, i)
	}
	if b.Baseline != "" && !m.Unbased() {
		ratio := func(c *analysis.Cell) (estimate, bool) {
			k := c.Comparison
			if k == nil || quantity.Ratio(k, m.Metric) == quantity.None {
				return estimate{}, false
			}
			return estimate{k.Ratio, k.CI, k.Differs(), factorText(k, m.Metric) + ", " + quantity.FactorInterval(k)}, true
		}
		caption := "ratio to " + b.Baseline + " of the same run, " + string(m.Better) + " is better"
		if s, ok := drawSides(r, m, runs, result.Score, ratio, caption, true); ok {
			list = append(list, s)
		}
	}
	absolute := func(c *analysis.Cell) (estimate, bool) {
		if c.Summary == nil {
			return estimate{}, false
		}
		return estimate{c.Summary.Median, c.Summary.CI, true, quantity.Median(c.Summary, m.Unit)}, true
	}
	for _, machine := range r.Machines {
		if len(machine.Runs) < 2 {
			continue
		}
		caption := "absolute, on " + machine.Name + ", " + string(m.Better) + " is better"
		if s, ok := drawSides(r, m, machine.Runs, m.Unit, absolute, caption, false); ok {
			list = append(list, s)
		}
	}
	return list
}

// drawSides draws the estimates of the cells of some runs. It returns false without at least two runs to draw.
func drawSides(source *report.Report, m *analysis.Metric, runs []int, unit result.Unit, read func(*analysis.Cell) (estimate, bool), caption string, ratio bool) (sides, bool) {
	var values []float64
	var rows []*analysis.Row
	var selection []int
	for i := range m.Rows {
		r := &m.Rows[i]
		has := false
		for _, run := range runs {
			e, ok := read(&r.Cells[run])
			if !ok {
				continue
			}
			has = true
			values = append(values, e.value)
			if e.ci != nil {
				values = append(values, e.ci.Lo, e.ci.Hi)
			}
			if !slices.Contains(selection, run) {
				selection = append(selection, run)
			}
		}
		if has {
			rows = append(rows, r)
		}
	}
	if ratio && len(values) > 0 {
		values = append(values, 1)
	}
	s := sides{Metric: m.Name, Caption: caption, Width: web.Num(figureWidth)}
	var ok bool
	if s.Axis, ok = web.NewAxis(values, unit, margin, figureWidth-margin); !ok || len(selection) < 2 {
		return sides{}, false
	}
	slices.Sort(selection)
	height := sideTop + sideStep*float64(len(selection)) + 4
	bottom := height * float64(len(rows))
	s.Height, s.AxisY, s.LabelY = web.Num(bottom+axisHeight), web.Num(bottom), web.Num(bottom+15)
	if ratio {
		s.One = web.Num(s.Axis.At(1))
	}
	alt := []string{m.Name + ", " + caption}
	for i, r := range rows {
		y := height * float64(i)
		lane := sideLane{Name: web.Shorten(r.Target, longestName), Full: r.Target, LabelY: web.Num(y + 13)}
		for n, run := range selection {
			e, ok := read(&r.Cells[run])
			if !ok {
				continue
			}
			middle := y + sideTop + sideStep*float64(n) + 2
			mark := mark{Class: "side", Colour: web.Colour(run), Path: web.Shape(run, s.Axis.At(e.value), middle, sideRadius), Title: source.Runs[run].Label + ": " + e.text}
			if e.shown {
				mark.Class += " full"
			}
			mark.Class += " " + mark.Colour
			if e.ci != nil {
				mark.Whisker = fmt.Sprintf("M%s %sH%s", web.Num(s.Axis.At(e.ci.Lo)), web.Num(middle), web.Num(s.Axis.At(e.ci.Hi)))
			}
			lane.Marks = append(lane.Marks, mark)
			alt = append(alt, r.Target+" on "+mark.Title)
		}
		s.Lanes = append(s.Lanes, lane)
	}
	for _, run := range selection {
		s.Legend = append(s.Legend, runHead{Key: keyOf(run), Label: source.Runs[run].Label})
	}
	s.Alt = strings.Join(alt, "; ")
	return s, true
}
