package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// D. M. Reboussin, D. L. DeMets, K. Kim & K. K. G. Lan, Controlled Clinical Trials 21 (2000) 190–207, and the vignette of the
// R package ldbounds: five equally spaced looks.
func TestBoundariesPublished(t *testing.T) {
	for i, z := range runBoundaries([]float64{0.2, 0.4, 0.6, 0.8, 1}, 0.05) {
		near(t, "critical value", z, []float64{4.8769, 3.3569, 2.6803, 2.2898, 2.0310}[i], 2e-4)
	}
	near(t, "one look", runBoundaries([]float64{1}, 0.05)[0], 1.959964, 1e-6)
	// A look too early to spend anything does not change the others.
	with := runBoundaries([]float64{0.01, 0.5, 1}, 0.05)
	if !math.IsInf(with[0], 1) {
		t.Errorf("the look at 1 %% has the critical value %g, want none", with[0])
	}
	for i, z := range runBoundaries([]float64{0.5, 1}, 0.05) {
		near(t, "critical value after an empty look", with[i+1], z, 1e-5)
	}
}

// Over all looks, the intervals of runs with unknown variance miss the true value in at most alpha of all series.
func TestLooksErrorRate(t *testing.T) {
	const replicates = 20_000
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ first, last int }{{4, 4}, {4, 8}, {4, 12}, {4, 20}, {6, 20}} {
		looks := NewRunLooks(c.first, c.last, 0.05)
		if len(looks) != c.last-c.first+1 {
			t.Fatalf("%d levels for the looks %d to %d", len(looks), c.first, c.last)
		}
		quantiles := make([]float64, len(looks))
		for i, level := range looks {
			quantiles[i] = student(c.first + i).Quantile(1 - level/2)
		}
		missed := 0
		for range replicates {
			sum, squares := 0.0, 0.0
			for n := 1; n <= c.last; n++ {
				x := random.NormFloat64()
				sum, squares = sum+x, squares+x*x
				if n < c.first {
					continue
				}
				mean := sum / float64(n)
				se := math.Sqrt((squares - sum*mean) / float64(n-1) / float64(n))
				if math.Abs(mean) > quantiles[n-c.first]*se {
					missed++
					break
				}
			}
		}
		if share := float64(missed) / replicates; share > 0.0525 || share < 0.04 {
			t.Errorf("looks %d to %d: %.2f %% of the series have an interval without the true value, want about 5 %%", c.first, c.last, 100*share)
		} else {
			t.Logf("looks %d to %d: %.2f %%", c.first, c.last, 100*share)
		}
	}
}
