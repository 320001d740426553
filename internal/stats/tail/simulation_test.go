package tail

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

var misfitSeries = flag.Int("misfit-series", 400, "number of series of each shape in TestMisfits; the table was made with 6000")

// simulates runs the simulations in parallel, and skips them in short mode.
func simulates(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("simulations take seconds")
	}
	t.Parallel()
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func (g GPD) draw(r *rand.Rand) float64 { return g.Quantile(1 - r.Float64()) }

// The table of limits is reproduced.
func TestMisfits(t *testing.T) {
	simulates(t)
	const n = 300
	for i, m := range misfits {
		r := random(uint64(i))
		y := make([]float64, n)
		distances := make([]float64, *misfitSeries)
		for k := range distances {
			for j := range y {
				y[j] = GPD{1, m.shape}.draw(r)
			}
			distances[k] = AndersonDarling(y, MaxLikelihood(y, minShape))
		}
		var beyond int
		for _, d := range distances {
			if d > m.limit {
				beyond++
			}
		}
		slices.Sort(distances)
		share := float64(beyond) / float64(len(distances))
		t.Logf("shape %g: limit %.4f; %.2f %% of the series are beyond the table's limit %g", m.shape, distances[len(distances)*95/100], 100*share, m.limit)
		if math.Abs(share-0.05) > 4*math.Sqrt(0.05*0.95/float64(len(distances))) {
			t.Errorf("shape %g: %.1f %% of the series are beyond the limit, want 5 %%", m.shape, 100*share)
		}
	}
}

// process is a stationary process with the quantile function of its values.
type process struct {
	name     string
	draw     func(r *rand.Rand, n int) []float64
	quantile func(p float64) float64 // exceeded with probability p
}

func independent(name string, d interface{ Quantile(float64) float64 }) process {
	return process{name, func(r *rand.Rand, n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = d.Quantile(r.Float64())
		}
		return values
	}, func(p float64) float64 { return d.Quantile(1 - p) }}
}

var processes = []process{
	independent("exponential", distuv.Exponential{Rate: 1}),
	independent("lognormal", distuv.LogNormal{Mu: 0, Sigma: 0.25}),
	independent("gamma", distuv.Gamma{Alpha: 4, Beta: 1}),
	independent("Pareto of shape 0.15", distuv.Pareto{Xm: 1, Alpha: 1 / 0.15}),
	independent("uniform", distuv.Uniform{Min: 1, Max: 2}),
	// Each disturbance hits two samples: the larger of two neighbours. Its extremal index is 1/2.
	{"clusters of two", func(r *rand.Rand, n int) []float64 {
		values := make([]float64, n)
		last := r.ExpFloat64()
		for i := range values {
			next := r.ExpFloat64()
			values[i], last = max(last, next), next
		}
		return values
	}, func(p float64) float64 { return -math.Log(-math.Expm1(math.Log1p(-p) / 2)) }},
}

// A bound by two decades beyond the samples covers the true value as stated in docs/statistics.md, and sound series are rarely refused.
func TestSoundSeriesAreRarelyRefused(t *testing.T) {
	const n = 10_000
	trials := 12
	if !testing.Short() {
		trials = 150
	}
	for i, p := range processes {
		t.Run(p.name, func(t *testing.T) {
			r := random(uint64(i))
			refused := map[Test]int{}
			probabilities := []float64{1e-5, 1e-6} // one decade and two beyond the samples
			exceeded, covered := make([]int, 2), make([]int, 2)
			for range trials {
				m, err := Fit(Of(p.draw(r, n)))
				for k, probability := range probabilities {
					var b Bound
					if err == nil {
						b, err = m.Bound(probability)
					}
					truth := p.quantile(probability)
					var refusal *Refusal
					switch {
					case errors.As(err, &refusal):
						if k == 0 {
							refused[refusal.Test]++
						}
					case err != nil:
						t.Fatal(err)
					case b.CI.Lo <= truth && truth <= b.CI.Hi:
						covered[k]++
					case truth > b.CI.Hi:
						exceeded[k]++
					}
				}
			}
			bounds := trials
			for _, k := range refused {
				bounds -= k
			}
			t.Logf("%d series: %v refused; of %d bounds for %v %d cover, %d are too low", trials, refused, bounds, probabilities, covered, exceeded)
			if share := float64(trials-bounds) / float64(trials); share > 0.1+3*math.Sqrt(0.1*0.9/float64(trials)) {
				t.Errorf("%.0f %% are refused", 100*share)
			}
			for k, probability := range probabilities {
				if share := float64(exceeded[k]) / float64(bounds); share > 0.1+3*math.Sqrt(0.1*0.9/float64(bounds)) {
					t.Errorf("%.0f %% of the bounds for %g are too low", 100*share, probability)
				}
			}
		})
	}
}
