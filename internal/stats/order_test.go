package stats

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// A sort by digits gives the order of a sort by comparisons, with NaN first and equal values in their order.
func TestOrder(t *testing.T) {
	r := random(1)
	special := []float64{math.NaN(), math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0, 1, math.Inf(1)}
	for _, n := range []int{0, 1, leastByDigits - 1, leastByDigits, 5000} {
		for name, draw := range map[string]func() float64{
			"normal":  r.NormFloat64,
			"equal":   func() float64 { return 2 },
			"ties":    func() float64 { return float64(r.IntN(10) - 5) },
			"special": func() float64 { return special[r.IntN(len(special))] },
			"any": func() float64 {
				return math.Float64frombits(r.Uint64())
			},
		} {
			values := make([]float64, n)
			want := make([]int, n)
			for i := range values {
				values[i], want[i] = draw(), i
			}
			slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
			if got := order(values); !slices.Equal(got, want) {
				t.Errorf("%d values, %s: the order differs from a stable sort", n, name)
			}
			sorted := slices.Sorted(slices.Values(values))
			if !slices.EqualFunc(Sorted(values), sorted, func(a, b float64) bool { return cmp.Compare(a, b) == 0 }) {
				t.Errorf("%d values, %s: the sorted values differ", n, name)
			}
		}
	}
}

// A comparison of many blocks sorts its values several times.
func BenchmarkOrder(b *testing.B) {
	for name, n := range map[string]int{"few": 100, "least-by-digits": leastByDigits, "many": 5000} {
		values := normal.series(random(1), n, 1)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				order(values)
			}
		})
	}
}
