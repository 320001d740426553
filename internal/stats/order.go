package stats

import (
	"math"
	"slices"
)

// place is the index of a value, with a key in the order of the values.
type place struct {
	key   uint64
	index int
}

// leastByDigits is the least number of values that a sort by digits sorts faster than a sort by comparisons, whose branches a processor cannot
// predict. Sorts are most of the time of a comparison of many blocks.
const leastByDigits = 256

// inOrder returns the places of values in ascending order of the values, NaN first. Equal values keep their order.
func inOrder(values []float64) []place {
	places := make([]place, len(values))
	for i, v := range values {
		places[i] = place{sortKey(v), i}
	}
	if len(values) >= leastByDigits {
		return sortByDigits(places)
	}
	slices.SortFunc(places, func(a, b place) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return a.index - b.index
	})
	return places
}

// sortKey is an integer in the order of the values. It is the same for both zeros, and 0 for NaN.
func sortKey(v float64) uint64 {
	if math.IsNaN(v) {
		return 0
	}
	bits := math.Float64bits(v + 0)
	return bits ^ (uint64(int64(bits)>>63) | 1<<63) // all bits of a negative number, and the sign of the others
}

// sortByDigits sorts places by one byte of their keys after another, from the lowest one (D. E. Knuth, "The Art of Computer Programming", volume 3,
// section 5.2.5). Places with equal keys keep their order. A byte that all keys share needs no pass.
func sortByDigits(places []place) []place {
	var counts [8][256]int
	for _, p := range places {
		for digit := range counts {
			counts[digit][byte(p.key>>(8*digit))]++
		}
	}
	sorted := make([]place, len(places))
	for digit := range counts {
		starts, shift := &counts[digit], 8*digit
		if starts[byte(places[0].key>>shift)] == len(places) {
			continue
		}
		start := 0
		for value, count := range starts {
			starts[value], start = start, start+count
		}
		for _, p := range places {
			value := byte(p.key >> shift)
			sorted[starts[value]] = p
			starts[value]++
		}
		places, sorted = sorted, places
	}
	return places
}

// order returns the indices of values in ascending order of the values, NaN first. Equal values keep their order.
func order(values []float64) []int {
	indices := make([]int, len(values))
	for i, p := range inOrder(values) {
		indices[i] = p.index
	}
	return indices
}

// Sorted returns values in ascending order, NaN first.
func Sorted(values []float64) []float64 {
	if len(values) < leastByDigits {
		return slices.Sorted(slices.Values(values))
	}
	return valuesAt(inOrder(values), values)
}

// valuesAt returns the values at places.
func valuesAt(places []place, values []float64) []float64 {
	list := make([]float64, len(places))
	for i, p := range places {
		list[i] = values[p.index]
	}
	return list
}
