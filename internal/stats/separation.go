package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/combin"
)

// Separation is the complete separation of values by membership: each member is above each other value, or each below.
type Separation struct {
	// Larger is set if the members have the larger values.
	Larger bool
	// P is the two-sided p-value: the probability 2/C(n, k) that a random choice of k of n values is separated.
	P float64
}

// Separate reports whether members separate values completely. It needs values on both sides. The p-value is of the permutation test: without a connection each choice
// of members is equally likely. It assumes nothing about the values. One exception breaks it, so it misses causes that others overlay, and claims few.
func Separate(values []float64, isMember func(i int) bool) (Separation, bool) {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	counts := [2]int{}
	for i, v := range values {
		side := 0
		if isMember(i) {
			side = 1
		}
		counts[side]++
		low[side], high[side] = min(low[side], v), max(high[side], v)
	}
	if counts[0] == 0 || counts[1] == 0 || !(low[1] > high[0] || high[1] < low[0]) {
		return Separation{}, false
	}
	n, k := float64(counts[0]+counts[1]), float64(counts[1])
	return Separation{Larger: low[1] > high[0], P: min(1, 2*math.Exp(-combin.LogGeneralizedBinomial(n, k)))}, true
}
