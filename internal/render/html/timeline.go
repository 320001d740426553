package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Sizes of a timeline, in units of its drawing.
const (
	timeWidth  = 800.0
	timeLeft   = 168.0 // the width of the names of rows
	timeRight  = 792.0
	timeTop    = 18.0 // below the names of bands
	timeRow    = 17.0
	timeFoot   = 20.0 // the height of the axis
	leastPiece = 0.4
	execSize   = 3.2
	// longestRow is the longest name of a row that fits.
	longestRow = 28
)

// timeline is a figure of rows over time.
type timeline struct {
	Name, Caption string
	Legend        []lineKey
	Mark          string
	MarkPath      string
	Panels        []timePanel
}

type timePanel struct {
	Name, Alt, Regions, Region string
	Open                       bool
	Width, Height              string
	Left, Right                string
	Bottom, LabelY             string
	X                          []web.Tick
	Bands                      []band
	Rows                       []timeRowView
}

// timeRowView is a row. Line is the path of its life, and States are the paths of its states.
type timeRowView struct {
	Name, Full, LabelY, Line string
	States                   []statePath
	Marks                    []mark
}

// statePath is the times of a row in a state, as one path.
type statePath struct{ Class, Path string }

// stateClasses are the looks of the states: the height, the colour and the dashes. States of one height differ in dashes too.
func stateClasses(states []document.State) []string {
	heights := map[document.Height]int{}
	classes := make([]string, len(states))
	for i, s := range states {
		classes[i] = fmt.Sprintf("state h%d %s d%d", s.Height+1, web.Colour(i), heights[s.Height]%4+1)
		heights[s.Height]++
	}
	return classes
}

func (b *builder) timeline(source *document.Timeline) *timeline {
	out := &timeline{Name: source.Name, Caption: source.Caption, Mark: source.Mark, MarkPath: triangle(13, 8)}
	classes := stateClasses(source.States)
	for i, s := range source.States {
		hasState := func(r document.TimelineRow) bool {
			return slices.ContainsFunc(r.Pieces, func(p document.TimelinePiece) bool { return p.State == i })
		}
		if slices.ContainsFunc(source.Panels, func(p document.TimelinePanel) bool { return slices.ContainsFunc(p.Rows, hasState) }) {
			out.Legend = append(out.Legend, lineKey{s.Name, classes[i]})
		}
	}
	for i := range source.Panels {
		if p := &source.Panels[i]; finite(p.End) && p.End > 0 {
			panel := newTimePanel(p, classes)
			panel.Region = b.region()
			out.Panels = append(out.Panels, panel)
		}
	}
	return out
}

func newTimePanel(p *document.TimelinePanel, classes []string) timePanel {
	axis := web.FullAxis(0, p.End, result.Seconds, timeLeft, timeRight)
	bottom := timeTop + timeRow*float64(len(p.Rows))
	out := timePanel{
		Name: p.Name, Alt: p.Text, Open: !p.Folded, Width: web.Num(timeWidth), Height: web.Num(bottom + timeFoot), Left: web.Num(timeLeft), Right: web.Num(timeRight),
		Bottom: web.Num(bottom), LabelY: web.Num(bottom + 14), X: axis.Ticks,
	}
	out.Bands, out.Regions = newBands(p.Bands, &axis, result.Seconds, timeLeft, timeRight)
	x := func(seconds float64) float64 { return within(axis.At(seconds), timeLeft, timeRight) }
	for i := range p.Rows {
		source := &p.Rows[i]
		y := timeTop + timeRow*(float64(i)+0.5)
		height := web.Num(y)
		row := timeRowView{
			Name: web.Shorten(source.Name, longestRow), Full: source.Text, LabelY: web.Num(y + 3.5), Line: fmt.Sprintf("M%s %sH%s", web.Num(x(source.Start)), height, web.Num(x(source.End))),
		}
		paths := make([]strings.Builder, len(classes))
		for _, piece := range source.Pieces {
			start := x(piece.Start)
			fmt.Fprintf(&paths[piece.State], "M%s %sh%s", web.Num(start), height, fine(max(x(piece.End)-start, leastPiece)))
		}
		for state := range paths {
			if paths[state].Len() > 0 {
				row.States = append(row.States, statePath{classes[state], paths[state].String()})
			}
		}
		for _, m := range source.Marks {
			row.Marks = append(row.Marks, mark{Path: triangle(x(m.At), y), Title: m.Text})
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// triangle is the path of a mark that points down to a place of a row.
func triangle(x, y float64) string {
	return fmt.Sprintf("M%s %sh%sL%s %sz", web.Num(x-execSize), web.Num(y-2*execSize), web.Num(2*execSize), web.Num(x), web.Num(y))
}

// within keeps a coordinate between two others.
func within(x, left, right float64) float64 {
	if math.IsNaN(x) {
		return left
	}
	return min(max(x, left), right)
}
