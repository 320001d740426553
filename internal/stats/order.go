package stats

import (
	"math"
	"slices"
	"sync"
)

// place is the index of a value, with a key in the order of the values.
type place struct {
	key   uint64
	index int
}

// leastByDigits is the least number of values that a sort by digits sorts faster than a sort by comparisons, whose branches a processor cannot
// predict. Sorts are most of the time of a comparison of many blocks.
const leastByDigits = 256

// ordering are the places of values in ascending order of the values.
type ordering struct{ places, spare []place }

// orderings are for the next values: many sorts of one report need the same memory.
var orderings = sync.Pool{New: func() any { return new(ordering) }}

// inOrder orders values, NaN first. Equal values keep their order. The caller must call release.
func inOrder(values []float64) *ordering {
	o := orderings.Get().(*ordering)
	o.places = slices.Grow(o.places[:0], len(values))[:len(values)]
	for i, v := range values {
		o.places[i] = place{sortKey(v), i}
	}
	if len(values) >= leastByDigits {
		o.sortByDigits()
		return o
	}
	slices.SortFunc(o.places, func(a, b place) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return a.index - b.index
	})
	return o
}

func (o *ordering) release() { orderings.Put(o) }

// sortKey is an integer in the order of the values. It is the same for both zeros, and 0 for NaN.
func sortKey(v float64) uint64 {
	if math.IsNaN(v) {
		return 0
	}
	bits := math.Float64bits(v + 0)
	return bits ^ (uint64(int64(bits)>>63) | 1<<63) // all bits of a negative number, and the sign of the others
}

// valueOfKey is the inverse of sortKey.
func valueOfKey(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key ^ 1<<63)
	}
	return math.Float64frombits(^key)
}

// sortByDigits sorts the places by one byte of their keys after another, from the lowest one (D. E. Knuth, "The Art of Computer Programming", volume 3,
// section 5.2.5). Places with equal keys keep their order. A byte that all keys share needs no pass.
func (o *ordering) sortByDigits() {
	var counts [8][256]int
	for _, p := range o.places {
		for digit := range counts {
			counts[digit][byte(p.key>>(8*digit))]++
		}
	}
	o.spare = slices.Grow(o.spare[:0], len(o.places))[:len(o.places)]
	for digit := range counts {
		starts, shift := &counts[digit], 8*digit
		if starts[byte(o.places[0].key>>shift)] == len(o.places) {
			continue
		}
		start := 0
		for value, count := range starts {
			starts[value], start = start, start+count
		}
		for _, p := range o.places {
			value := byte(p.key >> shift)
			o.spare[starts[value]] = p
			starts[value]++
		}
		o.places, o.spare = o.spare, o.places
	}
}

// order returns the indices of values in ascending order of the values, NaN first. Equal values keep their order.
func order(values []float64) []int {
	o := inOrder(values)
	defer o.release()
	indices := make([]int, len(values))
	for i, p := range o.places {
		indices[i] = p.index
	}
	return indices
}

// Sorted returns values in ascending order, NaN first.
func Sorted(values []float64) []float64 {
	if len(values) < leastByDigits {
		return slices.Sorted(slices.Values(values))
	}
	o := inOrder(values)
	defer o.release()
	return o.sorted(values)
}

// sorted returns the values in ascending order.
func (o *ordering) sorted(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, p := range o.places {
		list[i] = values[p.index]
	}
	return list
}
