package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
)

// Limits on the points of a page. A page of 10⁶ points has 13 MB, and a browser takes seconds to draw it. Points above the limits are left
// out, but no extreme value is, and the plot states the number of its points. The database and exports have all samples.
const (
	// mostDots is the largest number of dots in the strips of a page.
	mostDots = 100_000
	// ringDots is the size of the ring of a disturbed trial, in dots: it is an element of its own.
	ringDots = 4
	// leastDots is the smallest limit for a lane. A page of very many lanes may exceed mostDots by it.
	leastDots = 8
	// rowDots is the number of dots that stand for the points of a few adjacent blocks in a reduced lane.
	rowDots = 8
	// mostPlaces is the largest number of places in all lines of the curves of a page.
	mostPlaces = 60_000
	// mostLine is the largest number of places in one line. leastLine is the smallest limit for one.
	mostLine  = 4 * int(figureWidth)
	leastLine = 24
	// columnPlaces is the largest number of places that a reduced line has in each of its columns.
	columnPlaces = 4
	// mostRaw is the largest number of raw values in a curve. More would be a smear and a large file. mostRawOfPage is for all curves.
	mostRaw       = 4000
	mostRawOfPage = 60_000
)

// room is the space of a page for the points of each plot.
type room struct {
	dots   int // in a lane
	places int // in a line of a curve
	raw    int // raw values in a curve
}

// newRoom divides the space of a page among the plots of metrics. Small plots have all of their points, and large ones share the rest.
func newRoom(metrics []analysis.Metric) room {
	var lanes, lines, raw []int
	for i := range metrics {
		for _, row := range metrics[i].Rows {
			lanes = append(lanes, size(row.Cells[0].Points))
			lines = append(lines, len(row.Cells[0].Curve))
		}
		raw = append(raw, rawValues(&metrics[i]))
	}
	return room{
		dots:   max(leastDots, share(lanes, mostDots)),
		places: min(mostLine, max(leastLine, share(lines, mostPlaces))),
		raw:    min(mostRaw, whole(raw, mostRawOfPage)),
	}
}

// rawValues counts the values in the curve of a metric.
func rawValues(m *analysis.Metric) int {
	n := 0
	for _, row := range m.Rows {
		for _, p := range row.Cells[0].Curve {
			n += len(p.Values)
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

// size is the size of points in dots.
func size(points []analysis.Point) int {
	n := len(points)
	for _, p := range points {
		if p.Disturbed() {
			n += ringDots - 1
		}
	}
	return n
}

// drawnDots selects the points of a lane that fit into a number of dots: all, or a few from each group of adjacent trials. These are the least, the
// largest, and evenly spaced ranks between them. So outliers, the distribution and its changes over time stay visible.
func drawnDots(points []analysis.Point, limit int) []analysis.Point {
	count := size(points)
	if count <= limit {
		return points
	}
	weight := float64(count) / float64(len(points)) // dots for a point
	groups := max(1, int(float64(limit)/weight)/rowDots)
	selection := make([]analysis.Point, 0, groups*rowDots)
	var order []int
	for g := range groups {
		group := points[g*len(points)/groups : (g+1)*len(points)/groups]
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

// extremes selects points of a line: the first, the least, the largest and the last of each column, so that no peak is lost. The points of a
// column are adjacent.
func extremes(points int, column func(i int) int, value func(i int) float64) []int {
	var selection []int
	for start := 0; start < points; {
		end, minimum, maximum := start, start, start
		for end+1 < points && column(end+1) == column(start) {
			end++
			if value(end) < value(minimum) {
				minimum = end
			}
			if value(end) > value(maximum) {
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

// drawnPlaces selects the places of a line that fit into a number of them: all, or the extremes of the medians in each column.
func drawnPlaces(places []analysis.Place, limit int) []int {
	columns := len(places)
	if len(places) > limit {
		columns = max(1, limit/columnPlaces)
	}
	return extremes(len(places), func(i int) int { return i * columns / len(places) }, func(i int) float64 { return places[i].Median })
}

// shown states the number of points of a plot that has not all of them. It is empty for a plot with all points.
func shown(count, total int, things string) string {
	if count == total {
		return ""
	}
	return fmt.Sprintf("shown: %d of %d %s, extremes kept", count, total, things)
}
