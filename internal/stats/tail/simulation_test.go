package tail

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// The figures of the pages and the table of limits come from more series than the full size has.
var (
	misfitSeries = flag.Int("misfit-series", 400, "number of series of each shape in TestMisfits, with "+simulation.Variable+"; the table was made with 6000")
	soundSeries  = flag.Int("series", 150, "number of series of each process in TestCoverageOfBounds, with "+simulation.Variable)
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func (g GPD) draw(r *rand.Rand) float64 { return g.Quantile(1 - r.Float64()) }

// The table of limits is reproduced.
func TestMisfits(t *testing.T) {
	series := simulation.Trials(t, 100, *misfitSeries)
	const n = 300
	for i, m := range misfits {
		r := random(uint64(i))
		y := make([]float64, n)
		distances := make([]float64, series)
		for k := range distances {
			for j := range y {
				y[j] = GPD{1, m.shape}.draw(r)
			}
			distances[k] = AndersonDarling(y, MaxLikelihood(y, minShape))
		}
		var hits int
		for _, d := range distances {
			if d > m.limit {
				hits++
			}
		}
		slices.Sort(distances)
		share := float64(hits) / float64(len(distances))
		t.Logf("shape %g: limit %.4f; %.2f %% of the series are beyond the table's limit %g", m.shape, distances[len(distances)*95/100], 100*share, m.limit)
		simulation.AtMost(t, 0.05, hits, series, "shape %g: series beyond the limit", m.shape)
		simulation.AtLeast(t, 0.05, hits, series, "shape %g: series beyond the limit", m.shape)
	}
}

// process is a stationary process with the quantile function of its values, and with the shares that docs/statistics.md states.
type process struct {
	name     string
	draw     func(r *rand.Rand, n int) []float64
	quantile func(p float64) float64 // exceeded with probability p
	// covered and tooLow are the shares of the bounds at each of boundedAt whose interval contains the true value, and whose upper end is below it.
	covered, tooLow [2]float64
}

// boundedAt are one decade and two beyond the samples.
var boundedAt = [2]float64{1e-5, 1e-6}

func independent(name string, d interface{ Quantile(float64) float64 }, cover, tooLow [2]float64) process {
	return process{name, func(r *rand.Rand, n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = d.Quantile(r.Float64())
		}
		return values
	}, func(p float64) float64 { return d.Quantile(1 - p) }, cover, tooLow}
}

var processes = []process{
	independent("exponential", distuv.Exponential{Rate: 1}, [2]float64{0.94, 0.94}, [2]float64{0.04, 0.04}),
	independent("lognormal", distuv.LogNormal{Mu: 0, Sigma: 0.25}, [2]float64{0.93, 0.90}, [2]float64{0.07, 0.09}),
	independent("gamma", distuv.Gamma{Alpha: 4, Beta: 1}, [2]float64{0.91, 0.91}, [2]float64{0.08, 0.09}),
	independent("Pareto of shape 0.15", distuv.Pareto{Xm: 1, Alpha: 1 / 0.15}, [2]float64{0.94, 0.94}, [2]float64{0.05, 0.04}),
	// The shape of a bound is at least cautiousShape, and the shape of a uniform tail is −1: each interval is above the true value.
	independent("uniform", distuv.Uniform{Min: 1, Max: 2}, [2]float64{}, [2]float64{}),
	// Each disturbance hits two samples: the larger of two neighbours. Its extremal index is 1/2.
	{"exponential in clusters of two", func(r *rand.Rand, n int) []float64 {
		values := make([]float64, n)
		last := r.ExpFloat64()
		for i := range values {
			next := r.ExpFloat64()
			values[i], last = max(last, next), next
		}
		return values
	}, func(p float64) float64 { return -math.Log(-math.Expm1(math.Log1p(-p) / 2)) }, [2]float64{0.95, 0.94}, [2]float64{0.05, 0.06}},
}

// boundsOf are the bounds of a series at boundedAt.
func boundsOf(samples []float64) (bounds [2]Bound, err error) {
	m, err := Fit(Of(samples))
	if err != nil {
		return bounds, err
	}
	for k, p := range boundedAt {
		if bounds[k], err = m.Bound(p); err != nil {
			return bounds, err
		}
	}
	return bounds, nil
}

// Bounds cover the true value, and are too low, as often as docs/statistics.md states. At most one sound series in twenty is refused.
//
// Invariant worst-case.
func TestCoverageOfBounds(t *testing.T) {
	const n, mostRefused, rounding = 10_000, 0.05, 0.005
	trials := simulation.Trials(t, 30, *soundSeries)
	for i, p := range processes {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := random(uint64(i))
			refusals := map[Test]int{}
			var bounded int
			var coverCount, tooLow [2]int
			for range trials {
				bounds, err := boundsOf(p.draw(r, n))
				if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
					refusals[refusal.Test]++
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				bounded++
				for k, b := range bounds {
					switch truth := p.quantile(boundedAt[k]); {
					case truth > b.CI.Hi:
						tooLow[k]++
					case truth >= b.CI.Lo:
						coverCount[k]++
					}
				}
			}
			share := func(count int) float64 { return float64(count) / float64(bounded) }
			t.Logf("%s, %d series of %d samples: %.1f %% refused %s; the interval for %g, %g contains the true value in %.1f, %.1f %%, and is too low in %.1f, %.1f %%",
				p.name, trials, n, 100*float64(trials-bounded)/float64(trials), strings.TrimPrefix(fmt.Sprint(refusals), "map"), boundedAt[0], boundedAt[1],
				100*share(coverCount[0]), 100*share(coverCount[1]), 100*share(tooLow[0]), 100*share(tooLow[1]))
			simulation.AtMost(t, mostRefused, trials-bounded, trials, "refused series")
			for k, probability := range boundedAt {
				for _, c := range []struct {
					what   string
					got    int
					stated float64
				}{{"cover", coverCount[k], p.covered[k]}, {"are too low", tooLow[k], p.tooLow[k]}} {
					simulation.AtMost(t, c.stated+rounding, c.got, bounded, "bounds for %g that %s", probability, c.what)
					simulation.AtLeast(t, c.stated-rounding, c.got, bounded, "bounds for %g that %s", probability, c.what)
				}
			}
		})
	}
}
