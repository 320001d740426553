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
	shortest, longest := math.Inf(1), 0.0
	for _, p := range t.Panels {
		shortest, longest = min(shortest, p.End), max(longest, p.End)
		for _, l := range p.Lines {
			if l == nil {
				continue
			}
			from := shift(t, l)
			lo, hi = min(lo, l.Min-from), max(hi, l.Max-from)
		}
	}
	if lo == 0 && hi == 0 {
		hi = 1
	}
	own := shortest*ownTimes < longest
	if own {
		out.Caption += "; each target has its own axis of time"
	}
	for i, name := range t.Names {
		out.Lines = append(out.Lines, legendLine{name, lineClass(i)})
	}
	y, drawn := web.AxisOver(lo, hi, t.Unit, panelBottom, panelTop, false)
	for i := range t.Panels {
		p := &t.Panels[i]
		end := longest
		if own {
			end = p.End
		}
		out.Panels = append(out.Panels, newPanel(t, p, y, end, drawn && end > 0))
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

func newPanel(t *analysis.Timelines, p *analysis.Panel, y web.Axis, end float64, drawn bool) panel {
	out := panel{
		Target: p.Target, Alt: panelText(t, p), Width: web.Num(figureWidth), Height: web.Num(panelHeight), Left: web.Num(curveLeft), Right: web.Num(figureWidth - margin),
		Top: web.Num(panelTop), Bottom: web.Num(panelBottom), TickY: web.Num(panelBottom + 13), LabelY: web.Num(panelBottom + 27), Y: y, Drawn: drawn,
	}
	if !drawn {
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
		from := shift(t, l)
		line := panelLine{Class: lineClass(i)}
		var path, points strings.Builder
		for n, at := range drawnPoints(l, &out.X) {
			letter := "L"
			if n == 0 {
				letter = "M"
			}
			x, y := web.Num(out.X.At(l.At[at])), web.Num(out.Y.At(l.Values[at]-from))
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
func newBands(all []analysis.Region, x *web.Axis) (bands []phaseBand, regions string) {
	spans := joined(all, x, 2)
	for least := 4.0; len(spans) > mostBands && least < figureWidth; least *= 2 {
		spans = joined(all, x, least)
	}
	var explained []string
	used := 0.0 // the end of the last label
	for i, s := range spans {
		b := phaseBand{X: web.Num(s.from), Width: web.Num(s.to - s.from), Class: fmt.Sprintf("phase p%d", i%2+1), Title: s.title()}
		name, centre := s.name(), (s.from+s.to)/2
		label := name
		if float64(utf8.RuneCountInString(name))*nameWidth > s.to-s.from {
			label = string(rune('a' + len(explained)%26))
			explained = append(explained, label+" "+name)
		}
		half := float64(utf8.RuneCountInString(label)) * nameWidth / 2
		if centre-half >= used {
			b.Label, b.LabelX = label, web.Num(centre)
			used = centre + half + 1
		}
		bands = append(bands, b)
	}
	return bands, strings.Join(explained, "; ")
}

// joined joins regions with a neighbour if one of them is narrower than least and the gap between them is narrower still.
func joined(all []analysis.Region, x *web.Axis, least float64) []span {
	var spans []span
	for _, r := range all {
		from := x.At(r.Start)
		to := max(x.At(r.End), from+1)
		if len(spans) > 0 {
			last := &spans[len(spans)-1]
			narrow := to-from < least || last.to-last.from < least
			same := len(last.names) == 1 && last.names[0] == r.Name
			if from-last.to < least/2 && (narrow || same) {
				last.to, last.end = max(last.to, to), max(last.end, r.End)
				last.count++
				if !slices.Contains(last.names, r.Name) {
					last.names = append(last.names, r.Name)
				}
				continue
			}
		}
		spans = append(spans, span{from: from, to: to, start: r.Start, end: r.End, names: []string{r.Name}, count: 1})
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
