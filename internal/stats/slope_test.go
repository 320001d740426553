package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// NIST Statistical Reference Datasets, linear regression: Norris (36 observations, sorted by x) and its certified line.
func TestLineNorris(t *testing.T) {
	x := []float64{
		0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5, 11.6,
		556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5,
	}
	y := []float64{
		0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9, 10.8,
		557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2,
	}
	// The places of a cumulative line ascend: the pair of equal places is merged into its mean elsewhere, so the certified values
	// test the fit itself.
	places, values := separated(x, y)
	l := CumulativeLine(places, values)
	near(t, "slope", l.Slope, 1.00211681802045, 1e-9)
	near(t, "intercept", l.Intercept, -0.262323073774029, 1e-6)
}

// separated sorts pairs by x, and moves equal places apart by less than the tolerance of the test.
func separated(x, y []float64) (places, values []float64) {
	for _, i := range order(x) {
		place := x[i]
		if n := len(places); n > 0 && place <= places[n-1] {
			place = math.Nextafter(places[n-1], math.Inf(1))
		}
		places, values = append(places, place), append(values, y[i])
	}
	return places, values
}

// The interval by hand: five increments 1, 2, 3, 2, 2 at distance 1.
func TestLineByHand(t *testing.T) {
	l := CumulativeLine([]float64{1, 2, 3, 4, 5, 6}, []float64{0, 1, 3, 6, 8, 10})
	// Σ(x−x̄)(y−ȳ)/Σ(x−x̄)² = 37/17.5. The weights of the increments are 2.5, 4, 4.5, 4 and 2.5 over 17.5, and their variance is 2/4.
	near(t, "slope", l.Slope, 37/17.5, 1e-12)
	half := 2.776445105 * math.Sqrt(0.5*(2*2.5*2.5+2*4*4+4.5*4.5)/(17.5*17.5))
	near(t, "lower end", l.CI.Lo, l.Slope-half, 1e-8)
	near(t, "upper end", l.CI.Hi, l.Slope+half, 1e-8)
}

// The slopes of parts add up to the slope of the whole.
func TestLineIsAdditive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var places, a, b, sum []float64
	for i := range 20 {
		places = append(places, float64(i))
		a, b = append(a, random.Float64()), append(b, 100*random.ExpFloat64())
		sum = append(sum, a[i]+b[i])
	}
	near(t, "slope", CumulativeLine(places, a).Slope+CumulativeLine(places, b).Slope, CumulativeLine(places, sum).Slope, 1e-9)
}

func TestLineRefuses(t *testing.T) {
	for name, in := range map[string][2][]float64{
		"one point":         {{1}, {1}},
		"different lengths": {{1, 2}, {1}},
		"equal places":      {{1, 1}, {1, 2}},
		"no number":         {{1, 2}, {1, math.NaN()}},
	} {
		if l := CumulativeLine(in[0], in[1]); !math.IsNaN(l.Slope) || l.CI != nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := CumulativeLine([]float64{1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5}); l.Slope != 1 || l.CI != nil {
		t.Errorf("five points give %+v, want no interval", l)
	}
}

// The interval covers the true slope if errors accumulate, if they are independent, and if most of the growth comes in jumps. The usual
// interval of least squares does not cover it in the first case.
func TestLineCoverage(t *testing.T) {
	const runs = 2000
	for _, c := range []struct {
		name  string
		least float64
		value func(r *rand.Rand, sum *float64) float64 // with the slope 1
	}{
		{"errors accumulate", 0.94, func(r *rand.Rand, sum *float64) float64 { *sum += 1 + 0.3*r.NormFloat64(); return *sum }},
		{"skewed increments", 0.90, func(r *rand.Rand, sum *float64) float64 { *sum += r.ExpFloat64(); return *sum }},
		{"independent errors", 0.99, func(r *rand.Rand, sum *float64) float64 { *sum++; return *sum + 3*r.NormFloat64() }},
		{"one jump in five", 0.85, func(r *rand.Rand, sum *float64) float64 {
			if r.IntN(5) == 0 {
				*sum += 5
			}
			return *sum
		}},
	} {
		for _, n := range []int{10, 50} {
			r := rand.New(rand.NewPCG(7, uint64(n)))
			coverCount := 0
			for range runs {
				var sum float64
				var places, values []float64
				for i := range n {
					places, values = append(places, float64(i+1)), append(values, c.value(r, &sum))
				}
				coverCount += count(covers(*CumulativeLine(places, values).CI, 1))
			}
			if share := float64(coverCount) / runs; share < c.least {
				t.Errorf("%s, %d points: covered in %.3f of the runs, want %v", c.name, n, share, c.least)
			}
		}
	}
}
