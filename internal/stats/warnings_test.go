package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestWarnings(t *testing.T) {
	alternating := slices.Repeat([]float64{14, 26}, 8)
	for _, c := range []struct {
		name   string
		series []float64
		want   []string
	}{
		{"none", nil, []string{"few-samples: 0 of the 6 samples that an interval needs"}},
		{"few", []float64{1, 2, 3}, []string{"few-samples: 3 of the 6 samples that an interval needs"}},
		{"all equal", slices.Repeat([]float64{3}, 20), nil},
		{"all zero", slices.Repeat([]float64{0}, 20), nil},
		{"rising", []float64{10, 11, 12, 13, 14, 15, 16, 17, 18}, []string{"drift: values rise by 54.5 % from the first to the last third of the run"}},
		{"falling below zero", []float64{-10, -11, -12, -13, -14, -15, -16, -17, -18}, []string{"drift: values fall by 54.5 % from the first to the last third of the run"}},
		{"falling far", []float64{900, 800, 700, 90, 80, 70, 9, 8, 7}, []string{"drift: values fall by 99 % from the first to the last third of the run"}},
		{"rising above zero", []float64{-4, -3, -2, -1, 1, 2, 3, 4, 5}, []string{"drift: values rise by 700 % of the median from the first to the last third of the run"}},
		{"rising by nothing", []float64{1.0000, 1.0001, 1.0002, 1.0003, 1.0004, 1.0005, 1.0006, 1.0007, 1.0008}, nil},
		{"two exact values", alternating, []string{"bimodal: values lie in two groups, of 8 and 8; the second's median is 1.86 times the first's"}},
		{"two groups around zero", slices.Repeat([]float64{-1, 1}, 6), []string{"bimodal: values lie in two groups, of 6 and 6"}},
		{"mostly zero", append(slices.Repeat([]float64{0}, 15), 1), nil},
		{"two groups, one per cent apart", slices.Repeat([]float64{100, 101}, 8), nil},
		{"whole numbers", slices.Repeat([]float64{3, 4, 5, 4, 4, 3, 5, 4}, 3), nil},
		{"one of twelve far away", []float64{10, 10.1, 9.9, 10.2, 9.8, 30, 10, 10.1, 9.9, 10.3, 9.7, 10}, []string{
			"outliers: 1 of 12 values lie far from the rest, one of them 200 % above the median",
		}},
		{"all equal but one", []float64{5, 5, 5, 5, 5, 5, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, []string{
			"outliers: 1 of 20 values lie far from the rest, one of them 80 % below the median",
		}},
		{"not finite", []float64{1, 2, 3, 4, 5, math.NaN()}, nil},
	} {
		var got []string
		for _, w := range warnings(c.series) {
			got = append(got, fmt.Sprintf("%s: %s", w.Kind, w.Message))
			if w.Advice == "" {
				t.Errorf("%s: no advice for %s", c.name, w.Kind)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// The dip does not change with place, unit or mirror.
func TestDipIsInvariant(t *testing.T) {
	r := random(1)
	for range 5000 {
		n := 4 + r.IntN(30)
		sorted, mirrored := make([]float64, n), make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(r.IntN(20))
		}
		slices.Sort(sorted)
		for i, v := range sorted {
			mirrored[n-1-i] = 7 - 2*v
		}
		d := dip(sorted)
		if m := dip(mirrored); math.Abs(d-m) > 1e-12 {
			t.Fatalf("the dip of %v is %g, of its mirror %g", sorted, d, m)
		}
		if d < 0.5/float64(n)-1e-12 || d > 0.25+1e-12 {
			t.Fatalf("the dip of %v is %g, which no dip is", sorted, d)
		}
	}
}
