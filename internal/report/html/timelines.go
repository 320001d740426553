package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	panelHeight = 158.0
	panelTop    = 16.0 // of the plot, below the names of the timed regions
	panelBottom = 124.0
	// mostPoints is the largest number of points in a line that are all drawn: one for each unit of the width. The points of a longer line
	// share places.
	mostPoints = int(figureWidth)
	// fewPoints is the largest number of points that are marked.
	fewPoints = 24
	// mostBands is the largest number of bands of timed regions in a panel.
	mostBands = 12
	// nameWidth is the approximate width of a character in the name of a band.
	nameWidth = 5.0
	// ownTimes is a quotient of the longest and the shortest trial. If it is larger, each panel has its own axis of time.
	ownTimes = 4
)

// timelines is the plots of a group of timelines: a panel for each target, all with the same lines and the same axis of values.
type timelines struct {
	Title, Caption string
	Lines          []legendLine
	Panels         []panel
}

// legendLine is a line with its colour and dashes.
type legendLine struct{ Name, Class string }

type panel struct {
	Target, Alt   string
	Width, Height string
	Left, Right   string
	Top, Bottom   string
	TickY, LabelY string
	Y, X          web.Axis
	Bands         []phaseBand
	Lines         []panelLine
	Regions       string // the names of bands that are too narrow for a name
	Drawn         bool
	Zero          string // the line of the value 0, if it is inside the plot
}

// phaseBand is one timed region, or several that are close together.
type phaseBand struct {
	X, Width, Class string
	Title           string
	// Label is the name, or a letter that stands for it; empty if another label is there.
	Label, LabelX string
}

type panelLine struct{ Class, Path, Points string }

func newTimelines(t *analysis.Timelines) timelines {
	out := timelines{Title: t.Title, Caption: "over time"}
	if t.Change {
		out.Caption = "over time, change since the first value"
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	minimum, maximum := math.Inf(1), 0.0
	for _, p := range t.Panels {
		minimum, maximum = min(minimum, p.End), max(maximum, p.End)
		for _, l := range p.Lines {
			if l == nil {
				continue
			}
			base := shift(t, l)
			lo, hi = min(lo, l.Min-base), max(hi, l.Max-base)
		}
	}
	if lo == 0 && hi == 0 {
		hi = 1
	}
	isOwn := minimum*ownTimes < maximum
	if isOwn {
		out.Caption += "; each target has its own axis of time"
	}
	for i, name := range t.Names {
		out.Lines = append(out.Lines, legendLine{name, lineClass(i)})
	}
	y, hasAxis := web.AxisOver(lo, hi, t.Unit, panelBottom, panelTop, false)
	for i := range t.Panels {
		p := &t.Panels[i]
		end := maximum
		if isOwn {
			end = p.End
		}
		out.Panels = append(out.Panels, newPanel(t, p, y, end, hasAxis && end > 0))
	}
	return out
}

// shift is the value that a plot subtracts from a line.
func shift(t *analysis.Timelines, l *analysis.Line) float64 {
	if t.Change {
		return l.First
	}
	return 0
}

func lineClass(i int) string { return fmt.Sprintf("%s d%d", web.Colour(i), i%4+1) }

func newPanel(t *analysis.Timelines, p *analysis.Panel, y web.Axis, end float64, hasAxis bool) panel {
	out := panel{
		Target: p.Target, Alt: panelText(t, p), Width: web.Num(figureWidth), Height: web.Num(panelHeight), Left: web.Num(curveLeft), Right: web.Num(figureWidth - margin),
		Top: web.Num(panelTop), Bottom: web.Num(panelBottom), TickY: web.Num(panelBottom + 13), LabelY: web.Num(panelBottom + 27), Y: y, Drawn: hasAxis,
	}
	if !hasAxis {
		return out
	}
	out.X = web.FullAxis(0, end, result.Seconds, curveLeft, figureWidth-margin)
	if y.Spans(0) {
		out.Zero = web.Num(y.At(0))
	}
	out.Bands, out.Regions = newBands(p.Regions, &out.X)
	for i, l := range p.Lines {
		if l == nil {
			continue
		}
		base := shift(t, l)
		line := panelLine{Class: lineClass(i)}
		var path, points strings.Builder
		for n, index := range drawnPoints(l, &out.X) {
			letter := "L"
			if n == 0 {
				letter = "M"
			}
			x, y := web.Num(out.X.At(l.At[index])), web.Num(out.Y.At(l.Values[index]-base))
			fmt.Fprintf(&path, "%s%s %s", letter, x, y)
			if len(l.At) <= fewPoints {
				fmt.Fprintf(&points, "M%s %sh0", x, y)
			}
		}
		line.Path, line.Points = path.String(), points.String()
		out.Lines = append(out.Lines, line)
	}
	return out
}

// drawnPoints selects the points of a line: all, or the first, the least, the largest and the last one of each unit of the width, so that no
// peak is lost.
func drawnPoints(l *analysis.Line, x *web.Axis) []int {
	column := func(i int) int { return i }
	if len(l.At) > mostPoints {
		column = func(i int) int { return int(x.At(l.At[i])) }
	}
	return extremes(len(l.At), column, func(i int) float64 { return l.Values[i] })
}

// span is a band before it has a label: regions that are close together.
type span struct {
	from, to   float64 // coordinates
	start, end float64 // seconds
	names      []string
	count      int
}

func (s *span) name() string {
	name := strings.Join(s.names, ", ")
	if s.count > len(s.names) {
		name = fmt.Sprintf("%d × %s", s.count, name)
	}
	return name
}

func (s *span) title() string {
	if s.count == 1 {
		return fmt.Sprintf("%s: %s to %s", s.name(), quantity.Text(s.start, result.Seconds), quantity.Text(s.end, result.Seconds))
	}
	return fmt.Sprintf("%s: between %s and %s", s.name(), quantity.Text(s.start, result.Seconds), quantity.Text(s.end, result.Seconds))
}

// newBands draws the regions, and joins neighbours that are too narrow until at most mostBands are left. A name that does not fit is
// replaced by a letter, which regions explains.
func newBands(list []analysis.Region, x *web.Axis) (bands []phaseBand, regions string) {
	spans := joined(list, x, 2)
	for width := 4.0; len(spans) > mostBands && width < figureWidth; width *= 2 {
		spans = joined(list, x, width)
	}
	var legend []string
	edge := 0.0 // the end of the last label
	for i, s := range spans {
		b := phaseBand{X: web.Num(s.from), Width: web.Num(s.to - s.from), Class: fmt.Sprintf("phase p%d", i%2+1), Title: s.title()}
		name, centre := s.name(), (s.from+s.to)/2
		label := name
		if float64(utf8.RuneCountInString(name))*nameWidth > s.to-s.from {
			label = string(rune('a' + len(legend)%26))
			legend = append(legend, label+" "+name)
		}
		half := float64(utf8.RuneCountInString(label)) * nameWidth / 2
		if centre-half >= edge {
			b.Label, b.LabelX = label, web.Num(centre)
			edge = centre + half + 1
		}
		bands = append(bands, b)
	}
	return bands, strings.Join(legend, "; ")
}

// joined joins regions with a neighbour if one of them is narrower than width and the gap between them is narrower still.
func joined(list []analysis.Region, x *web.Axis, width float64) []span {
	var spans []span
	for _, r := range list {
		start := x.At(r.Start)
		end := max(x.At(r.End), start+1)
		if len(spans) > 0 {
			last := &spans[len(spans)-1]
			isNarrow := end-start < width || last.to-last.from < width
			isSame := len(last.names) == 1 && last.names[0] == r.Name
			if start-last.to < width/2 && (isNarrow || isSame) {
				last.to, last.end = max(last.to, end), max(last.end, r.End)
				last.count++
				if !slices.Contains(last.names, r.Name) {
					last.names = append(last.names, r.Name)
				}
				continue
			}
		}
		spans = append(spans, span{from: start, to: end, start: r.Start, end: r.End, names: []string{r.Name}, count: 1})
	}
	return spans
}

// panelText is a panel in words.
func panelText(t *analysis.Timelines, p *analysis.Panel) string {
	parts := []string{t.Title + " on " + p.Target}
	for i, l := range p.Lines {
		if l != nil {
			parts = append(parts, fmt.Sprintf("%s from %s to %s, at most %s", t.Names[i],
				quantity.Signed(l.First, t.Unit), quantity.Signed(l.Last, t.Unit), quantity.Signed(l.Max, t.Unit)))
		}
	}
	return strings.Join(parts, "; ")
}
