package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// Limits on the points of a page. A page of 10⁶ points has 13 MB, and a browser takes seconds to draw it. Points above the limits are left
// out, but no extreme value is, and the figure states the number of its points. The database and exports have all samples.
const (
	// mostDots is the largest number of dots of samples in a page.
	mostDots = 100_000
	// ringDots is the size of the ring of a hollow sample, in dots: it is an element of its own.
	ringDots = 4
	// leastDots is the smallest limit for a lane. A page of very many lanes may exceed mostDots by it.
	leastDots = 8
	// rowDots is the number of dots that stand for a few adjacent samples in a reduced lane.
	rowDots = 8
	// mostPlaces is the largest number of values in all curves with single values behind them.
	mostPlaces = 60_000
	// mostLine is the largest number of values in one curve. leastLine is the smallest limit for one.
	mostLine  = 4 * int(figureWidth)
	leastLine = 24
	// columnPlaces is the largest number of values that a reduced curve has in each of its columns.
	columnPlaces = 4
	// mostRaw is the largest number of single values in a plot. More would be a smear and a large file. mostRawOfPage is for all plots.
	mostRaw       = 4000
	mostRawOfPage = 60_000
	// mostNotes is the largest size of the notes of samples in a page, in bytes. Further samples have no note.
	mostNotes = 400_000
)

// room is the space of a page for the points of each figure.
type room struct {
	dots   int // in a lane
	places int // in a curve with single values behind it
	raw    int // single values in a plot
	notes  int // bytes of the notes of a lane
}

// newRoom divides the space of a page among its figures. Small figures have all of their points, and large ones share the rest.
func newRoom(blocks []document.Block) room {
	var lanes, lines, raw []int
	var measure func(blocks []document.Block)
	measure = func(blocks []document.Block) {
		for _, b := range blocks {
			switch b := b.(type) {
			case document.Section:
				measure(b.Blocks)
			case document.Lanes:
				for i := range b.Lanes {
					if s := b.Lanes[i].Samples; s != nil {
						lanes = append(lanes, size(s.Values))
					}
				}
			case document.Plot:
				raw = append(raw, rawValues(&b))
				for c := range curves(&b) {
					if c.Spread != nil {
						lines = append(lines, len(c.Values))
					}
				}
			case document.Facts, document.Text, document.Verbatim, document.List, document.Table, document.Course, document.Bars, document.Matrix, document.Timeline:
			}
		}
	}
	measure(blocks)
	count := len(lanes)
	return room{
		dots:   max(leastDots, share(lanes, mostDots)),
		places: min(mostLine, max(leastLine, share(lines, mostPlaces))),
		raw:    min(mostRaw, whole(raw, mostRawOfPage)),
		notes:  mostNotes / max(1, count),
	}
}

// rawValues counts the single values behind the curves of a plot.
func rawValues(p *document.Plot) int {
	n := 0
	for c := range curves(p) {
		for _, values := range c.Spread {
			n += len(values)
		}
	}
	return n
}

// share returns the largest limit for sizes whose sum must be at most a number. Larger sizes are cut to the limit. It sorts the sizes.
func share(sizes []int, limit int) int {
	slices.Sort(sizes)
	for i, s := range sizes {
		left := len(sizes) - i
		if s > limit/left {
			return limit / left
		}
		limit -= s
	}
	return math.MaxInt
}

// whole returns the largest limit for sizes whose sum must be at most a number. Larger sizes are left out. It sorts the sizes.
func whole(sizes []int, limit int) int {
	slices.Sort(sizes)
	for _, s := range sizes {
		if s > limit {
			return s - 1
		}
		limit -= s
	}
	return math.MaxInt
}

// size is the size of samples in dots.
func size(samples []document.Sample) int {
	n := len(samples)
	for _, s := range samples {
		if s.Hollow {
			n += ringDots - 1
		}
	}
	return n
}

// drawnSamples selects the samples of a lane that fit into a number of dots: all, or a few from each group of adjacent samples. These are the
// least, the largest, and evenly spaced ranks between them. So outliers, the distribution and its changes over time stay visible.
func drawnSamples(samples []document.Sample, limit int) []document.Sample {
	count := size(samples)
	if count <= limit {
		return samples
	}
	weight := float64(count) / float64(len(samples)) // dots for a sample
	groups := max(1, int(float64(limit)/weight)/rowDots)
	selection := make([]document.Sample, 0, groups*rowDots)
	var order []int
	for g := range groups {
		group := samples[g*len(samples)/groups : (g+1)*len(samples)/groups]
		order = order[:0]
		for i := range group {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(group[a].Value, group[b].Value) })
		var places []int
		for n := range rowDots {
			places = append(places, order[n*(len(order)-1)/(rowDots-1)])
		}
		slices.Sort(places)
		for _, i := range slices.Compact(places) {
			selection = append(selection, group[i])
		}
	}
	return selection
}

// drawnPlaces selects the values of a curve that fit into a number of them: all, or the first, the least, the largest and the last of each
// column, so that no peak is lost. The values of a column are adjacent, and share is the part of the axis before a value.
func drawnPlaces(values []float64, share func(i int) float64, limit int) []int {
	column := func(i int) int { return i }
	if len(values) > limit {
		columns := float64(max(1, limit/columnPlaces-1))
		column = func(i int) int { return int(share(i) * columns) }
	}
	var selection []int
	for start := 0; start < len(values); {
		end, minimum, maximum := start, start, start
		for end+1 < len(values) && column(end+1) == column(start) {
			end++
			if values[end] < values[minimum] {
				minimum = end
			}
			if values[end] > values[maximum] {
				maximum = end
			}
		}
		list := []int{start, minimum, maximum, end}
		slices.Sort(list)
		selection = append(selection, slices.Compact(list)...)
		start = end + 1
	}
	return selection
}

// single is one of the values behind a value of a curve.
type single struct {
	place int
	value float64
}

// faint returns the faint dots of a curve: all single values, or the least and the largest one of each column.
func faint(spread [][]float64, isWhole bool, limit int) []single {
	var values []single
	for i, list := range spread {
		for _, v := range list {
			values = append(values, single{i, v})
		}
	}
	if isWhole {
		return values
	}
	columns := min(len(spread), max(1, limit/columnPlaces))
	var selection []single
	for start := 0; start < len(values); {
		column := values[start].place * columns / len(spread)
		minimum, maximum, end := values[start], values[start], start
		for ; end < len(values) && values[end].place*columns/len(spread) == column; end++ {
			if v := values[end]; v.value < minimum.value {
				minimum = v
			} else if v.value > maximum.value {
				maximum = v
			}
		}
		selection = append(selection, minimum)
		if maximum != minimum {
			selection = append(selection, maximum)
		}
		start = end
	}
	return selection
}

// shown states the number of points of a figure that has not all of them. It is empty for a figure with all points.
func shown(count, total int) string {
	if count == total {
		return ""
	}
	return fmt.Sprintf("shown: %d of %d points, extremes kept", count, total)
}
