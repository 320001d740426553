package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The levels are those of the published boundaries at five equal looks (see TestPublishedBoundaries), which spend half of the error on each side.
func TestRunLooksArePublishedBoundaries(t *testing.T) {
	levels := NewRunLooks(1, 5, 0.05*1.2) // for alpha/1.2
	for i, level := range levels {
		near(t, "critical value", -normalQuantile(level/2), []float64{4.877, 3.357, 2.680, 2.290, 2.031}[i], 0.001)
	}
	near(t, "level of one look", NewRunLooks(4, 4, 0.05)[0], 0.05, 1e-9)
}

// Over all looks, the intervals of runs with unknown variance miss the true value in at most alpha of all series.
//
// Invariant ab-silence.
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
		misses := 0
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
					misses++
					break
				}
			}
		}
		if share := float64(misses) / replicates; share > 0.0525 || share < 0.04 {
			t.Errorf("looks %d to %d: %.2f %% of the series have an interval without the true value, want about 5 %%", c.first, c.last, 100*share)
		} else {
			t.Logf("repeated intervals, looks at %d to %d runs: %.2f %% of the series have one without the true value", c.first, c.last, 100*share)
		}
	}
}
