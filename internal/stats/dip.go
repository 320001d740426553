package stats

import (
	"cmp"
	"math"
	"slices"
)

// dip is Hartigan's dip statistic of sorted values: the greatest distance between their
// empirical distribution and the nearest unimodal distribution
// (J. A. Hartigan and P. M. Hartigan, "The Dip Test of Unimodality", Annals of Statistics
// 13 (1985) 70–84; section 4 has the algorithm). It is between 1/2n and 1/4.
//
// The empirical distribution is a staircase. A unimodal distribution is convex up to its
// mode and concave after it. On the left, the nearest one follows the greatest convex minorant of the
// lower corners of the stairs, and on the right the least concave majorant of the upper
// corners. The algorithm narrows the interval of the mode until the two fit within the dip
// that it has found outside the interval.
func dip(sorted []float64) float64 {
	lower, upper := corners(sorted, 0)
	best := 1.0 // twice the dip, in steps of the staircase
	for lo, hi := 0, len(lower)-1; ; {
		convex := minorant(lower[lo : hi+1])
		concave := majorant(upper[lo : hi+1])
		gap, left, right := widest(convex, concave)
		if gap <= best {
			break
		}
		for _, corner := range upper[lo : hi+1] {
			if corner.x < left {
				best = max(best, corner.y-convex.at(corner.x))
			}
		}
		for _, corner := range lower[lo : hi+1] {
			if corner.x > right {
				best = max(best, concave.at(corner.x)-corner.y)
			}
		}
		nextLo, nextHi := find(lower, left), find(lower, right)
		if nextLo == lo && nextHi == hi {
			break
		}
		lo, hi = nextLo, nextHi
	}
	return best / 2 / float64(len(sorted))
}

type point struct{ x, y float64 }

// line is a chain of straight lines through points with ascending x.
type line []point

// at interpolates the line at an x within it.
func (l line) at(x float64) float64 {
	i, found := slices.BinarySearchFunc(l, x, compareX)
	if found {
		return l[i].y
	}
	a, b := l[i-1], l[i]
	return a.y + (b.y-a.y)*((x-a.x)/(b.x-a.x))
}

func compareX(p point, x float64) int { return cmp.Compare(p.x, x) }

func find(corners []point, x float64) int {
	i, _ := slices.BinarySearchFunc(corners, x, compareX)
	return i
}

// corners returns, for each distinct value, the count of smaller values and the count of
// values up to it. A value at most tolerance above another counts as equal to it.
func corners(sorted []float64, tolerance float64) (lower, upper []point) {
	lower, upper = make([]point, 0, len(sorted)), make([]point, 0, len(sorted))
	for start := 0; start < len(sorted); {
		end := start + 1
		for end < len(sorted) && sorted[end]-sorted[start] <= tolerance {
			end++
		}
		lower = append(lower, point{sorted[start], float64(start)})
		upper = append(upper, point{sorted[start], float64(end)})
		start = end
	}
	return lower, upper
}

// minorant is the greatest convex line that passes above no point.
func minorant(points []point) line { return hull(points, 1) }

// majorant is the least concave line that passes below no point.
func majorant(points []point) line { return hull(points, -1) }

// hull removes each point that is not on the hull of its neighbours
// (A. M. Andrew's monotone chain, 1979). Side is 1 for the lower hull, −1 for the upper.
func hull(points []point, side float64) line {
	var l line
	for _, p := range points {
		for len(l) >= 2 {
			a, b := l[len(l)-2], l[len(l)-1]
			if side*((b.x-a.x)*(p.y-a.y)-(p.x-a.x)*(b.y-a.y)) > 0 {
				break
			}
			l = l[:len(l)-1]
		}
		l = append(l, p)
	}
	return l
}

// widest returns the greatest distance of the concave line from the convex line below it,
// and the new interval of the mode. The interval starts at a vertex of the convex line and
// ends at a vertex of the concave line. One of the two is the place of the greatest distance.
func widest(convex, concave line) (gap, left, right float64) {
	for _, p := range convex {
		if d := concave.at(p.x) - p.y; d > gap {
			i, _ := slices.BinarySearchFunc(concave, p.x, compareX)
			gap, left, right = d, p.x, concave[i].x
		}
	}
	for _, p := range concave {
		if d := p.y - convex.at(p.x); d > gap {
			i, found := slices.BinarySearchFunc(convex, p.x, compareX)
			if !found {
				i--
			}
			gap, left, right = d, convex[i].x, p.x
		}
	}
	return gap, left, right
}

type dipRow struct {
	n   int
	dip float64
}

// dipQuantile is the quantile at 1 − bimodalLevel of the dip of n uniform values, the
// unimodal distribution with the greatest dips: simulated, from 1 000 000 samples for
// n ≤ 20 to 12 000 for n = 5000.
var dipQuantile = [...]dipRow{
	{6, 0.1793},
	{7, 0.1754},
	{8, 0.1661},
	{9, 0.1571},
	{10, 0.1507},
	{12, 0.1413},
	{15, 0.1289},
	{20, 0.1144},
	{30, 0.0961},
	{50, 0.0767},
	{100, 0.0558},
	{200, 0.0402},
	{500, 0.02595},
	{1000, 0.01852},
	{5000, 0.00839},
}

// dipLimit is the dip of n values, n ≥ MinSamples, above which they are bimodal. It interpolates
// √n·dip, which tends to a constant, between the tabulated n.
func dipLimit(n int) float64 {
	last := len(dipQuantile) - 1
	i, found := slices.BinarySearchFunc(dipQuantile[:], n, func(row dipRow, n int) int { return row.n - n })
	scale := func(i int) float64 { return dipQuantile[i].dip * math.Sqrt(float64(dipQuantile[i].n)) }
	switch {
	case found:
		return dipQuantile[i].dip
	case i > last:
		return scale(last) / math.Sqrt(float64(n))
	}
	share := float64(n-dipQuantile[i-1].n) / float64(dipQuantile[i].n-dipQuantile[i-1].n)
	return (scale(i-1) + share*(scale(i)-scale(i-1))) / math.Sqrt(float64(n))
}

// unrounded spreads tied values evenly over their rounding step, because the dip takes each group
// of ties for a mode. The step is the least distance between two distinct values. With only two
// distinct values the step is not known, and the values stay: they are two modes.
func unrounded(sorted []float64) []float64 {
	tolerance := roundingError * max(math.Abs(sorted[0]), math.Abs(sorted[len(sorted)-1]))
	tied := false
	for i := 1; i < len(sorted) && !tied; i++ {
		tied = sorted[i]-sorted[i-1] <= tolerance
	}
	if !tied {
		return sorted
	}
	lower, upper := corners(sorted, tolerance)
	if len(lower) == len(sorted) || len(lower) < 3 {
		return sorted
	}
	step := math.Inf(1)
	for i := 1; i < len(lower); i++ {
		step = min(step, lower[i].x-lower[i-1].x)
	}
	spread := make([]float64, 0, len(sorted))
	for i := range lower {
		ties := upper[i].y - lower[i].y
		for k := range int(ties) {
			spread = append(spread, lower[i].x+step*((float64(k)+0.5)/ties-0.5))
		}
	}
	return spread
}
