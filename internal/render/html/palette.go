package html

import (
	"cmp"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
)

// looks is the number of different lines: each has a colour and dashes. mostColours is the number of the colours.
const (
	looks       = 36
	mostColours = 9
)

// keptParts is the number of parts with a colour of their own if bars have more parts than colours.
const keptParts = mostColours - 1

// palette has the look of each component of a page: a target, a part of bars or a line. A component has one look in all charts.
type palette map[string]int

// components are the names in a chart, and the number of them with each look.
type components struct {
	names []string
	used  [looks]int
}

// newPalette chooses the looks. Components of one chart differ in colour if they are not too many, else in colour or dashes. A colour that the page has used
// least is the first choice.
func newPalette(blocks []document.Block) palette {
	var charts []components
	places := map[string][]int{} // the charts with a component
	add := func(names []string) {
		for _, name := range names {
			places[name] = append(places[name], len(charts))
		}
		charts = append(charts, components{names: names})
	}
	collectComponents(blocks, add)
	p := palette{}
	var page [looks]int
	for i := range charts {
		for _, name := range charts[i].names {
			if _, has := p[name]; has {
				continue
			}
			var counts [looks]int // in the charts with this component
			for _, place := range places[name] {
				for look, n := range charts[place].used {
					counts[look] += n
				}
			}
			look := leastUsed(&counts, &page)
			p[name] = look
			page[look]++
			for _, place := range places[name] {
				charts[place].used[look]++
			}
		}
	}
	return p
}

// leastUsed is the look that is used least nearby, then the one with the colour that is used least nearby, and then in the page.
func leastUsed(counts, page *[looks]int) int {
	cost := func(look int) []int {
		sums := []int{counts[look], 0, 0}
		for twin := look % mostColours; twin < looks; twin += mostColours {
			sums[1], sums[2] = sums[1]+counts[twin], sums[2]+page[twin]
		}
		return sums
	}
	best := 0
	for look := 1; look < looks; look++ {
		if slices.Compare(cost(look), cost(best)) < 0 {
			best = look
		}
	}
	return best
}

// collectComponents passes the components of each chart to add, in the order of the page.
func collectComponents(blocks []document.Block, add func(names []string)) {
	for _, b := range blocks {
		switch b := b.(type) {
		case document.Section:
			collectComponents(b.Blocks, add)
		case document.Lanes:
			var names []string
			for i := range b.Lanes {
				if b.Lanes[i].Samples != nil {
					names = append(names, laneName(&b.Lanes[i]))
				}
			}
			add(names)
		case document.Plot:
			add(b.Names)
		case document.Bars:
			rest := restParts(&b)
			var names []string
			for part, name := range b.Parts {
				if !isOther(rest, part) {
					names = append(names, name)
				}
			}
			add(names)
		case document.Facts, document.Text, document.Verbatim, document.List, document.Table, document.Course, document.Matrix, document.Timeline:
		}
	}
}

// line is the classes of the line of a component.
func (p palette) line(name string) string { return lineClass(p[name]) }

// colour is the class of the colour of a component.
func (p palette) colour(name string) string { return web.Colour(p[name]) }

// restParts are the parts of bars that share a colour: the smallest ones, if there are more parts than colours. It has an element for each part, or none.
func restParts(b *document.Bars) []bool {
	if len(b.Parts) <= mostColours {
		return nil
	}
	sums := make([]float64, len(b.Parts))
	for i := range b.Bars {
		for _, p := range b.Bars[i].Pieces {
			if finite(p.Value) {
				sums[p.First] += math.Abs(p.Value)
			}
		}
	}
	order := make([]int, len(sums))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	rest := make([]bool, len(sums))
	for _, part := range order[keptParts:] {
		rest[part] = true
	}
	return rest
}

// isOther reports whether a part is one of those that share a colour.
func isOther(rest []bool, part int) bool { return rest != nil && rest[part] }
