package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// model is a distribution of a metric's values, in units of its median (bimodal: of the
// lower mode).
type model struct {
	name   string
	draw   func(*rand.Rand) float64
	median float64
}

var (
	normal = model{"normal", func(r *rand.Rand) float64 {
		return 1 + 0.05*r.NormFloat64()
	}, 1}
	lognormal = model{"lognormal", func(r *rand.Rand) float64 {
		return math.Exp(0.5 * r.NormFloat64())
	}, 1}
	// A floor and a tail, as in running times.
	tailed = model{"tailed", func(r *rand.Rand) float64 {
		return 1 + 0.1*(r.ExpFloat64()-math.Ln2)
	}, 1}
	// One trial in ten is disturbed.
	disturbed = model{"disturbed", func(r *rand.Rand) float64 {
		x := math.Exp(0.03 * r.NormFloat64())
		if r.Float64() < 0.1 {
			x *= 1.5
		}
		return x
	}, math.Exp(0.03 * normalQuantile(0.5/0.9))}
	// The lifecycle of crun: 14 and 26 ms.
	bimodal = model{"bimodal", func(r *rand.Rand) float64 {
		return mixture(r, 0.5)
	}, 20.0 / 14}
	lopsided = model{"lopsided", func(r *rand.Rand) float64 {
		return mixture(r, 0.35)
	}, 1 + 0.05*normalQuantile(0.5/0.65)}
	// A tail without a variance.
	pareto  = model{"Pareto", func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/1.5) }, math.Pow(2, 1/1.5)}
	uniform = model{"uniform", func(r *rand.Rand) float64 { return 0.5 + r.Float64() }, 1}
)

func mixture(r *rand.Rand, upper float64) float64 {
	mode := 1.0
	if r.Float64() < upper {
		mode = 26.0 / 14
	}
	return mode + 0.05*r.NormFloat64()
}

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func (m model) series(r *rand.Rand, n int, factor float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = factor * m.draw(r)
	}
	return values
}

// run returns n blocks of a baseline and of targets that differ from it by a factor. The noise of a block comes from
// hostNoise, in addition to a drift of 30 % over the run.
func run(r *rand.Rand, noise, hostNoise model, n int, factors ...float64) [][]Sample {
	targets := make([][]Sample, len(factors))
	for block := range n {
		level := hostNoise.draw(r) * (1 + 0.3*float64(block)/float64(n))
		for i, factor := range factors {
			targets[i] = append(targets[i], Sample{block, level * factor * noise.draw(r)})
		}
	}
	return targets
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 20)) }

// pairs are the values of two targets in n blocks.
func pairs(n int, value func(block int) (a, b float64)) (a, b []Sample) {
	for block := range n {
		x, y := value(block)
		a, b = append(a, Sample{block, x}), append(b, Sample{block, y})
	}
	return a, b
}

// count is 1 for true.
func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func covers(ci Interval, v float64) bool { return ci.Lo <= v && v <= ci.Hi }

// share of trials, as a fraction.
func share(count, trials int) float64 { return float64(count) / float64(trials) }

// simulationError is the standard error of a simulated share. Seeds are fixed, so a simulation always has the same
// result.
func simulationError(p float64, trials int) float64 { return math.Sqrt(p * (1 - p) / float64(trials)) }

func values(samples []Sample) []float64 {
	v := make([]float64, len(samples))
	for i, s := range samples {
		v[i] = s.Value
	}
	return v
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.17g, want %.17g ± %g", what, got, want, tolerance)
	}
}
