package html

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// Sizes of a bar, in units of its drawing. It is much wider on the screen.
const (
	barWidth  = 100.0
	barHeight = 10.0
	stepTop   = 6.0 // of the steps within a piece
)

// bars is stacked bars in one scale, with a legend of their parts.
type bars struct {
	Caption string
	Legend  []lineKey
	Bars    []bar
	Data    barsData
}

type bar struct {
	Name, Text, Alt string
	// First is set on the first bar of a group.
	First    bool
	Segments []segment
	// Mark is the end of the whole, Zero the start of the bar. They are empty at the bar's own ends.
	Mark, Zero string
}

// segment is a piece of a bar.
type segment struct{ Class, X, Y, Width, Height, Title string }

func newBars(b *document.Bars, p palette) *bars {
	out := &bars{Caption: b.Caption, Data: newBarsData(b)}
	rest := restParts(b)
	var classes []string // of the parts
	number := 0
	for i, name := range b.Parts {
		if isOther(rest, i) {
			classes = append(classes, "c0")
			number++
			continue
		}
		classes = append(classes, p.colour(name))
		out.Legend = append(out.Legend, lineKey{name, p.colour(name)})
	}
	if number > 0 {
		out.Legend = append(out.Legend, lineKey{fmt.Sprintf("other (%d parts)", number), "c0"})
	}
	low, high := 0.0, 0.0
	for i := range b.Bars {
		left, right := 0.0, 0.0
		for _, p := range b.Bars[i].Pieces {
			if finite(p.Value) {
				left, right = left+min(p.Value, 0), right+max(p.Value, 0)
			}
		}
		low, high = min(low, left), max(high, right)
		if end := b.Bars[i].Whole; end != nil && finite(*end) {
			low, high = min(low, *end), max(high, *end)
		}
	}
	scale := func(v float64) float64 { return barWidth * (v / (high - low)) }
	if !(high > low) || math.IsInf(high-low, 0) {
		scale = func(float64) float64 { return 0 }
	}
	for i := range b.Bars {
		out.Bars = append(out.Bars, newBar(&b.Bars[i], classes, scale(-low), scale))
	}
	return out
}

// newBar draws positive pieces to the right of zero and negative ones to the left. Parts that share a piece have a layer of it each.
func newBar(source *document.Bar, classes []string, zero float64, scale func(float64) float64) bar {
	out := bar{Name: source.Name, Text: source.Text, First: source.First}
	if source.Whole != nil && finite(*source.Whole) {
		out.Mark = fine(zero + scale(*source.Whole))
	}
	if zero > 0 {
		out.Zero = fine(zero)
	}
	alt := []string{strings.Trim(source.Name+": "+source.Text, ": ")}
	left, right := zero, zero
	for _, p := range source.Pieces {
		alt = append(alt, p.Text)
		if !finite(p.Value) {
			continue
		}
		width := scale(math.Abs(p.Value))
		x := right
		if p.Value < 0 {
			left -= width
			x = left
		} else {
			right += width
		}
		height := barHeight / float64(max(1, p.Last-p.First+1))
		for part := p.First; part <= p.Last; part++ {
			class := classes[part]
			if p.Faint {
				class += " unclear"
			}
			out.Segments = append(out.Segments, segment{class, fine(x), fine(height * float64(part-p.First)), fine(width), fine(height), p.Text})
		}
		start := x
		for i, step := range p.Steps {
			if !finite(step.Value) {
				continue
			}
			// Medians do not add up: the last step may end beyond the piece.
			end := min(start+scale(max(step.Value, 0)), x+width)
			out.Segments = append(out.Segments, segment{fmt.Sprintf("step s%d", i%2+1), fine(start), fine(stepTop), fine(end - start), fine(barHeight - stepTop), step.Text})
			start = end
		}
	}
	out.Alt = strings.Join(alt, "; ")
	return out
}

// fine spells a coordinate of a bar.
func fine(v float64) string { return strconv.FormatFloat(math.Round(v*1e3)/1e3+0, 'f', -1, 64) }
