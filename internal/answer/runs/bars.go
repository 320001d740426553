package runs

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// layerBars has a bar for each target, with a piece for each layer.
func layerBars(l *analysis.Layers) document.Bars {
	unit := l.Metric.Unit
	out := document.Bars{
		Parts:   analysis.LayerNames(),
		Unit:    unit,
		Caption: "medians of the differences within a block; a line marks the whole; negative layers are left of zero; all bars have the same scale",
	}
	if l.Merged() {
		out.Caption += "; a piece with several colours is layers that are not separable"
	}
	runtime := ""
	for i := range l.Stacks {
		s := &l.Stacks[i]
		bar := document.Bar{Name: s.Target, Text: quantity.Signed(s.Total.Median, unit), Whole: &s.Total.Median, First: s.Runtime != runtime}
		runtime = s.Runtime
		for _, p := range s.Parts {
			piece := document.Piece{First: int(p.First), Last: int(p.Last), Value: p.Median, Faint: p.Unclear(), Text: p.Name() + " " + quantity.Difference(p.Difference, unit)}
			if piece.Faint {
				piece.Text += ", not shown to differ from 0"
			}
			bar.Pieces = append(bar.Pieces, piece)
		}
		out.Bars = append(out.Bars, bar)
	}
	return out
}

// phaseBars has a bar for each target, with a piece for each timed region. It returns false if no target has several.
func phaseBars(s *analysis.Section) (document.Bars, bool) {
	out := document.Bars{Unit: result.Seconds, Caption: "the median of each timed region, in order; all bars have the same scale"}
	places := map[string]int{}
	hasSeveral, hasSteps := false, false
	var repeats []string
	for _, o := range s.Targets {
		if len(o.Phases) == 0 {
			continue
		}
		hasSeveral = hasSeveral || len(o.Phases) > 1
		bar, sum := document.Bar{Name: o.Target}, 0.0
		for _, p := range o.Phases {
			place, found := places[p.Name]
			if !found {
				place = len(places)
				places[p.Name] = place
				out.Parts = append(out.Parts, p.Name)
				if p.Times > 1 {
					repeats = append(repeats, fmt.Sprintf("%s is each of %d", p.Name, p.Times))
				}
			}
			piece := document.Piece{First: place, Last: place, Value: p.Seconds, Text: p.Name + " " + quantity.Text(p.Seconds, result.Seconds)}
			for _, step := range p.Steps {
				hasSteps = true
				piece.Steps = append(piece.Steps, document.Piece{Value: step.Seconds, Text: step.Name + " " + quantity.Text(step.Seconds, result.Seconds)})
			}
			sum += p.Seconds
			bar.Pieces = append(bar.Pieces, piece)
		}
		bar.Text = quantity.Text(sum, result.Seconds)
		out.Bars = append(out.Bars, bar)
	}
	if repeats != nil {
		out.Caption += "; " + strings.Join(repeats, ", ")
	}
	if hasSteps {
		out.Caption += "; the lower edge of a phase shows its calls of the engine, if there are several"
	}
	return out, hasSeveral
}

// componentBars has a bar for each target, with a piece for each component.
func componentBars(c *analysis.Components) document.Bars {
	out := document.Bars{
		Parts:   c.Names,
		Unit:    c.Unit,
		Caption: "medians over trials; the number is the median of the sums in each trial, and the medians of the components need not add up to it; all bars have the same scale",
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		bar := document.Bar{Name: r.Target, Text: quantity.Text(r.Total.Median, c.Unit)}
		for n, cell := range r.Cells {
			if cell != nil {
				bar.Pieces = append(bar.Pieces, document.Piece{First: n, Last: n, Value: max(cell.Median, 0), Text: c.Names[n] + " " + quantity.Median(cell, c.Unit)})
			}
		}
		out.Bars = append(out.Bars, bar)
	}
	return out
}
