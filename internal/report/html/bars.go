package html

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// bars is stacked bars in one scale, and a table with the values of their parts. Beside the table, bars would have no room,
// especially on a phone.
type bars struct {
	// Label names the table. Caption and Notes explain the bars.
	Label, Caption string
	Notes          []string
	// Whole is the heading of the column of sums. Rest is the heading of the remainder's column, or empty without one.
	Whole, Rest string
	Parts       []barPart
	Rows        []bar
}

// barPart is a part that bars have, and a column.
type barPart struct {
	Name, Class string
	// Small is an addition to the name.
	Small string
}

// addPart adds a part in the next colour.
func (b *bars) addPart(name, note string) {
	b.Parts = append(b.Parts, barPart{Name: name, Class: web.Colour(len(b.Parts)), Small: note})
}

type bar struct {
	Head heading
	// First is set on the first row of a group.
	First    bool
	Alt      string
	Segments []segment
	// Mark is the end of the whole, Zero the start of the bar. They are empty at the bar's own ends.
	Mark, Zero string
	// Short is the whole, beside the bar and as the first cell.
	Short, Rest string
	Cells       []barCell
}

// barCell is the value of a part, or of several adjacent parts.
type barCell struct {
	Value string
	Small []string
	// Soft is set without a value, and if the value is not shown to differ from 0.
	Soft bool
	Span int
}

var noCell = barCell{Value: quantity.None, Soft: true}

// segment is a part of a bar that is 100 wide and 10 high.
type segment struct{ Class, X, Y, Width, Height, Title string }

func wholeHeight(class string, x, width float64, title string) segment {
	return segment{class, fine(x), "0", fine(width), "10", title}
}

// fine spells a coordinate of a bar. Bars are 100 wide in their own units and much wider on the screen.
func fine(v float64) string { return strconv.FormatFloat(math.Round(v*1e3)/1e3, 'f', -1, 64) }

// newPhases is nil if no target has several phases.
func newPhases(s *analysis.Section) *bars {
	out := bars{Label: "Phases", Whole: "Together", Caption: "Phases: the median of each timed region, in order; all bars have the same scale"}
	places := map[string]int{}
	maximum := 0.0
	hasSeveral, steps := false, false
	for _, o := range s.Targets {
		hasSeveral = hasSeveral || len(o.Phases) > 1
		total := 0.0
		for _, p := range o.Phases {
			total += p.Seconds
			steps = steps || len(p.Steps) > 0
			if _, ok := places[p.Name]; !ok {
				places[p.Name] = len(places)
				note := ""
				if p.Times > 1 {
					note = fmt.Sprintf("each of %d", p.Times)
				}
				out.addPart(p.Name, note)
			}
		}
		maximum = max(maximum, total)
	}
	if !hasSeveral || maximum == 0 {
		return nil
	}
	if steps {
		out.Notes = []string{"The lower edge of a phase shows its calls of the engine, if there are several. They are part of the phase."}
	}
	for _, o := range s.Targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := bar{Head: newHeading(o.Target), Cells: slices.Repeat([]barCell{noCell}, 1+len(out.Parts))}
		x := 0.0
		for _, p := range o.Phases {
			width := 100 * p.Seconds / maximum
			value := quantity.Text(p.Seconds, result.Seconds)
			row.Segments = append(row.Segments, wholeHeight(out.Parts[places[p.Name]].Class, x, width, p.Name+" "+value))
			cell := barCell{Value: value}
			step := x
			for i, st := range p.Steps {
				title := st.Name + " " + quantity.Text(st.Seconds, result.Seconds)
				cell.Small = append(cell.Small, title)
				// Medians do not add up: the last may end beyond the phase's.
				end := min(step+100*st.Seconds/maximum, x+width)
				row.Segments = append(row.Segments, segment{fmt.Sprintf("step s%d", i%2+1), fine(step), "6", fine(end - step), "4", title})
				step = end
			}
			row.Cells[1+places[p.Name]] = cell
			x += width
		}
		row.Short = quantity.Text(x/100*maximum, result.Seconds)
		row.Cells[0] = barCell{Value: row.Short}
		row.Alt = o.Target + ": " + row.Short + " in all"
		out.Rows = append(out.Rows, row)
	}
	return &out
}

// newLayers shows the addition of each layer.
func newLayers(l *analysis.Layers) *bars {
	out := &bars{
		Label:   "Layers of " + l.Metric.Name,
		Caption: "Layers of " + l.Metric.Name + ": medians of the differences within a block, with 95 % intervals. A line marks the whole. Negative layers are left of zero. All bars have the same scale",
		Whole:   l.Metric.Name, Rest: "Remainder", Notes: finding.LayerNotes(l),
	}
	if l.Merged() {
		out.Notes = append(out.Notes, "A piece of a bar with several colours one above the other is layers that are not separable.")
	}
	for _, name := range analysis.LayerNames() {
		out.addPart(name, "")
	}
	lo, hi := 0.0, 0.0
	for _, s := range l.Stacks {
		bottom, top := extent(s)
		lo, hi = min(lo, bottom), max(hi, top, s.Total.Median)
	}
	scale := func(v float64) float64 { return 100 * (v / (hi - lo)) }
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		scale = func(float64) float64 { return 0 }
	}
	runtime := ""
	for i, s := range l.Stacks {
		out.Rows = append(out.Rows, newStack(&s, l.Metric.Unit, out.Parts, scale(-lo), scale))
		out.Rows[i].First = s.Runtime != runtime
		runtime = s.Runtime
	}
	return out
}

// extent is the reach of the parts of a stack below and above zero.
func extent(s analysis.Stack) (bottom, top float64) {
	for _, p := range s.Parts {
		bottom, top = bottom+min(p.Median, 0), top+max(p.Median, 0)
	}
	return bottom, top
}

// newStack draws positive parts to the right of zero and negative ones to the left. Layers that are not separable share a
// piece, each with a band.
func newStack(s *analysis.Stack, unit result.Unit, parts []barPart, zero float64, scale func(float64) float64) bar {
	row := bar{
		Head: newHeading(s.Target), Short: quantity.Signed(s.Total.Median, unit), Rest: quantity.None,
		Mark: fine(zero + scale(s.Total.Median)), Cells: []barCell{newPartCell(s.Total, unit)},
	}
	if len(s.Parts) > 1 {
		row.Rest = quantity.Signed(s.Remainder, unit)
	}
	if zero > 0 {
		row.Zero = fine(zero)
	}
	alt := []string{s.Target + ": " + quantity.Difference(s.Total, unit)}
	left, right := zero, zero
	next := analysis.ProcessLayer
	for _, p := range s.Parts {
		value := quantity.Difference(p.Difference, unit)
		name := p.Name()
		cell := newPartCell(p.Difference, unit)
		cell.Span = int(p.Last-p.First) + 1
		if p.First != p.Last {
			cell.Small = append(cell.Small, name)
		}
		if p.Unclear() {
			cell.Soft = true
			cell.Small = append(cell.Small, "not shown to differ from 0")
			value += ", not shown to differ from 0"
		}
		width := scale(math.Abs(p.Median))
		x := right
		if p.Median < 0 {
			left -= width
			x = left
		} else {
			right += width
		}
		for layer := p.First; layer <= p.Last; layer++ {
			height := 10 / float64(p.Last-p.First+1)
			class := parts[layer].Class
			if p.Unclear() {
				class += " unclear"
			}
			row.Segments = append(row.Segments, segment{class, fine(x), fine(height * float64(layer-p.First)), fine(width), fine(height), name + " " + value})
		}
		alt = append(alt, name+" "+value)
		row.Cells = append(row.Cells, cell)
		next = p.Last + 1
	}
	row.Cells = append(row.Cells, slices.Repeat([]barCell{noCell}, len(parts)-int(next))...)
	row.Alt = strings.Join(alt, "; ")
	return row
}

// newPartCell is a median above its interval.
func newPartCell(d stats.Difference, unit result.Unit) barCell {
	c := barCell{Value: quantity.Signed(d.Median, unit)}
	if d.CI != nil {
		c.Small = []string{quantity.DifferenceInterval(d, unit)}
	}
	return c
}

// newComponents shows a cost by component.
func newComponents(c *analysis.Components) *bars {
	out := &bars{
		Label:   c.Title,
		Caption: c.Title + ": medians over trials; all bars have the same scale",
		Whole:   "Together",
		Notes:   []string{"“Together” is the median of the sums in each trial. The medians of the components need not add up to it."},
	}
	for _, name := range c.Names {
		out.addPart(name, "")
	}
	maximum := 0.0
	for _, r := range c.Rows {
		sum := 0.0
		for _, cell := range r.Cells {
			if cell != nil {
				sum += max(cell.Median, 0)
			}
		}
		maximum = max(maximum, sum)
	}
	for _, r := range c.Rows {
		total := newSummaryCell(&r.Total, c.Unit)
		row := bar{Head: newHeading(r.Target), Short: total.Value, Cells: []barCell{total}}
		alt := []string{r.Target + ": " + quantity.Median(&r.Total, c.Unit)}
		x := 0.0
		for i, cell := range r.Cells {
			row.Cells = append(row.Cells, newSummaryCell(cell, c.Unit))
			if cell == nil {
				continue
			}
			value := quantity.Median(cell, c.Unit)
			alt = append(alt, c.Names[i]+" "+value)
			if maximum > 0 {
				width := 100 * (max(cell.Median, 0) / maximum)
				row.Segments = append(row.Segments, wholeHeight(out.Parts[i].Class, x, width, c.Names[i]+" "+value))
				x += width
			}
		}
		row.Alt = strings.Join(alt, "; ")
		out.Rows = append(out.Rows, row)
	}
	return out
}

func newSummaryCell(s *stats.Summary, unit result.Unit) barCell {
	if s == nil {
		return noCell
	}
	return newPartCell(stats.Difference{N: s.N, Median: s.Median, CI: s.CI}, unit)
}
