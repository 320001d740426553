package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// nile is the annual flow of the Nile at Aswan from 1871 to 1970, in 10⁸ m³ (G. W. Cobb, "The Problem of the Nile: Conditional Solution to a
// Changepoint Problem", Biometrika 65 (1978) 243–251).
var nile = []float64{
	1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
	1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
	831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
	781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
	744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
}

// TestNile: Cobb dates the change to 1898, so 1899 is the first year after it.
func TestNile(t *testing.T) {
	found := ChangePoints(nile, 1)
	if len(found) != 1 || 1871+found[0].At != 1899 || found[0].P > 0.005 || found[0].Before < 1000 || found[0].After > 900 {
		t.Errorf("the changes are %+v, want one in 1899", found)
	}
}

// TestDivideByDefinition compares divide with the definition of the paper.
func TestDivideByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	mean := func(a, b []float64, pairs float64) float64 {
		sum := 0.0
		for _, x := range a {
			for _, y := range b {
				sum += math.Abs(x - y)
			}
		}
		return sum / pairs
	}
	for range 20 {
		x := make([]float64, 6+random.IntN(12))
		for i := range x {
			x[i] = random.NormFloat64() + float64(i/5)
		}
		best, division := math.Inf(-1), 0
		for tau := MinSegment; tau <= len(x)-MinSegment; tau++ {
			for kappa := tau + MinSegment; kappa <= len(x); kappa++ {
				a, b := x[:tau], x[tau:kappa]
				n, m := float64(len(a)), float64(len(b))
				// Each pair is in the sum over a × a twice.
				q := n * m / (n + m) * (2*mean(a, b, n*m) - mean(a, a, n*(n-1)) - mean(b, b, m*(m-1)))
				if q > best {
					best, division = q, tau
				}
			}
		}
		if q, index := divide(x); math.Abs(q-best) > 1e-9 || index != division {
			t.Errorf("divide gives %v at %d, the definition %v at %d", q, index, best, division)
		}
	}
}

func TestChangePoints(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	levels := func(deviation float64, levels ...float64) []float64 {
		var values []float64
		for _, l := range levels {
			values = append(values, runsOf(random, 10, l, deviation)...)
		}
		return values
	}
	indices := func(found []ChangePoint) (list []int) {
		for _, c := range found {
			list = append(list, c.At)
		}
		return list
	}
	for name, c := range map[string]struct {
		values []float64
		want   []int
	}{
		"two changes":             {levels(0.01, 1, 1.2, 1.1), []int{10, 20}},
		"up and back":             {levels(0.01, 1, 1.2, 1), []int{10, 20}},
		"all equal":               {slices.Repeat([]float64{3}, 20), nil},
		"too few":                 {[]float64{1, 1, 1, 9, 9, 9, 9}, nil},
		"the least number":        {[]float64{1, 1.1, 1.2, 1.3, 9, 9.1, 9.2, 9.3}, []int{4}},
		"a value is not a number": {append(levels(0.01, 1, 2), math.NaN()), nil},
		"an infinite value":       {append(levels(0.01, 1, 2), math.Inf(1)), nil},
		"negative values":         {[]float64{-1, -1.1, -1.2, -1.3, 9, 9.1, 9.2, 9.3}, []int{4}},
		"one outlier":             {append(levels(0.01, 1), 9, 1, 1.01, 0.99, 1, 1), nil},
	} {
		if got := indices(ChangePoints(c.values, 1)); !slices.Equal(got, c.want) {
			t.Errorf("%s: the changes are at %v, want %v", name, got, c.want)
		}
	}
}

// TestChangePointsFalseAlarms: 5 % of the series without a change have one, by simulation.
func TestChangePointsFalseAlarms(t *testing.T) {
	trials := simulation.Trials(t, 200, 400)
	random := rand.New(rand.NewPCG(8, 9))
	alarms := 0
	for i := range trials {
		alarms += count(ChangePoints(runsOf(random, 20, 1, 0.05), uint64(i)) != nil)
	}
	simulation.AtMost(t, 0.05, alarms, trials, "series without a change that have one")
}

func TestChangePointsAreReproducible(t *testing.T) {
	values := slices.Clone(nile)
	first, repeat := ChangePoints(values, 4), ChangePoints(values, 4)
	multiple := slices.Clone(nile)
	for i := range multiple {
		multiple[i] *= scale
	}
	variant := ChangePoints(multiple, 4)
	if !slices.Equal(first, repeat) || !slices.Equal(values, nile) || len(variant) != 1 || variant[0].At != first[0].At || variant[0].P != first[0].P {
		t.Errorf("the changes are %v, %v and %v", first, repeat, variant)
	}
}
