package tail

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestGPD(t *testing.T) {
	for _, g := range []GPD{{2, 0}, {2, 0.3}, {2, -0.3}, {1e-6, 1e-9}} {
		for _, p := range []float64{0.9, 0.5, 1e-3, 1e-9} {
			near(t, "survival of the quantile", g.Survival(g.Quantile(p)), p, 1e-6*p)
		}
	}
	bounded := GPD{Scale: 3, Shape: -0.5}
	near(t, "survival beyond the end", bounded.Survival(6.1), 0, 0)
	if l := bounded.LogLikelihood([]float64{1, 6.1}); !math.IsInf(l, -1) {
		t.Errorf("excesses beyond the end have log-likelihood %v", l)
	}
}

func TestExtremalIndexOfPatterns(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []int
		want float64
	}{
		{"none", nil, 1},
		{"one", []int{7}, 1},
		{"all in a row", []int{0, 1, 2, 3, 4}, 1}, // gaps of 1 only: no cluster is distinguished
		// Pairs: gaps 1 and 99 in turn. Σ(T−1) = 196 over 3 gaps, Σ(T−1)(T−2) = 2·98·97.
		{"pairs", []int{0, 1, 100, 101}, min(1, 2*98.0*98/(3*98*97))},
	} {
		near(t, c.name, ExtremalIndex(c.at), c.want, 1e-12)
	}
}

func TestClustersKeepTheirLargestValue(t *testing.T) {
	s := Series{N: 400, At: []int{0, 1, 100, 101, 250, 252}, Values: []float64{1, 2, 4, 3, 5, 6}}
	got := clusters(s, 0.4) // two separating gaps
	if want := []int{1, 100, 252}; !slices.Equal(got.At, want) || !slices.Equal(got.Values, []float64{2, 4, 6}) {
		t.Errorf("clusters at %v with %v, want them at %v with 2, 4, 6", got.At, got.Values, want)
	}
	// The gaps of 1 are equal: either both pairs separate or none.
	if got := clusters(s, 0.7); !slices.Equal(got.At, []int{1, 100, 250, 252}) {
		t.Errorf("clusters at %v: equal gaps are treated differently", got.At)
	}
}

// A series of the largest values has the same model as all samples, and trials behind one another are one series.
//
// Invariant many-times.
func TestBoundedMemoryLosesNothing(t *testing.T) {
	r := random(5)
	samples := exponential(r, 20_000)
	reference, err := Fit(Of(samples))
	must.Do(t, err)
	const size = 1500
	var parts []Series
	for _, half := range [][]float64{samples[:10_000], samples[10_000:]} {
		sorted := slices.Sorted(slices.Values(half))
		s := Series{N: len(half), Floor: sorted[len(sorted)-size]}
		for i, v := range half {
			if v >= s.Floor {
				s.At, s.Values = append(s.At, i), append(s.Values, v)
			}
		}
		parts = append(parts, s)
	}
	union, err := Fit(Join(parts...))
	must.Do(t, err)
	if union.N != reference.N || union.Max != reference.Max || union.Threshold != reference.Threshold || union.GPD != reference.GPD {
		t.Errorf("the joined tails have %+v, the samples %+v", *union, *reference)
	}
	// Of two floors the higher one counts.
	parts[0].Floor = 5
	if higher, err := Fit(Join(parts...)); err == nil && higher.Threshold < 5 {
		t.Errorf("the threshold %v is below a floor", higher.Threshold)
	}
}

func exponential(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = 1 + r.ExpFloat64()
	}
	return values
}

// Invariant worst-case: A worst case is bounded only if all tests of its series pass; otherwise the report names the failed test.
func TestRefusals(t *testing.T) {
	r := random(3)
	const n = 20_000
	modify := func(change func(i int, v float64) float64) []float64 {
		values := exponential(r, n)
		for i := range values {
			values[i] = change(i, values[i])
		}
		return values
	}
	level := 0.0
	for _, c := range []struct {
		name          string
		samples       []float64
		test          Test
		samplesWanted int
	}{
		{"no sample", nil, Exceedances, 2000},
		{"one sample", []float64{1}, Exceedances, 2000},
		{"few samples", exponential(r, 1999), Exceedances, 2000},
		{"all equal", slices.Repeat([]float64{0.01}, n), Validity, 0},
		{"not a number", modify(func(i int, v float64) float64 { return map[bool]float64{true: math.NaN(), false: v}[i == 77] }), Validity, 0},
		{"infinite", modify(func(i int, v float64) float64 { return map[bool]float64{true: math.Inf(1), false: v}[i == 77] }), Validity, 0},
		{"negative", modify(func(i int, v float64) float64 { return map[bool]float64{true: -1, false: v}[i == 77] }), Validity, 0},
		{"bursts", modify(func(i int, v float64) float64 { return map[bool]float64{true: v + 20, false: v}[i%1000 < 50] }), Exceedances, -1},
		{"slower and slower", modify(func(i int, v float64) float64 { return v * (1 + float64(i)/n) }), Drift, 0},
		{"rate as before, larger sizes", modify(func(i int, v float64) float64 {
			if v < 3.5 {
				return v
			}
			return 3.5 + (v-3.5)*(1+4*float64(i)/n)
		}), Drift, 0},
		{"sizes that follow each other", modify(func(_ int, v float64) float64 {
			if v < 3 {
				return v
			}
			level = 0.9*level + 0.3*r.NormFloat64()
			return 3 + (v-3)*math.Exp(level)
		}), Independence, 0},
		{"a coarse clock", modify(func(_ int, v float64) float64 { return math.Round(v) }), Resolution, 0},
		{"a second cause in the tail", modify(func(_ int, v float64) float64 {
			if r.Float64() < 0.003 {
				return v + 30
			}
			return v
		}), Stability, 2 * n},
		{"infinite variance", modify(func(_ int, v float64) float64 { return math.Exp(0.8 * v) }), Heaviness, 0},
	} {
		m, err := Fit(Of(c.samples))
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: the model %+v, %v", c.name, m, err)
			continue
		}
		if refusal.Test != c.test || c.samplesWanted >= 0 && refusal.Samples != c.samplesWanted {
			t.Errorf("%s: refused by %q with %d samples, want %q with %d: %v", c.name, refusal.Test, refusal.Samples, c.test, c.samplesWanted, err)
		}
		if c.samplesWanted < 0 && refusal.Samples <= n {
			t.Errorf("%s: %d samples would do, but there are %d", c.name, refusal.Samples, n)
		}
		if !strings.Contains(err.Error(), string(c.test)) || refusal.Advice == "" {
			t.Errorf("%s: the error %q lacks the test or the remedy", c.name, err)
		}
	}
}

func TestBoundsGoTwoDecadesBeyondTheSamples(t *testing.T) {
	m, err := Fit(Of(exponential(random(8), 20_000)))
	must.Do(t, err)
	if got := m.Beyond(); !slices.Equal(got, []float64{1e-5, 1e-6}) {
		t.Errorf("bounds for %v, want 1e-5 and 1e-6", got)
	}
	last := 0.0
	for _, p := range append([]float64{1e-4}, m.Beyond()...) {
		b, err := m.Bound(p)
		must.Do(t, err)
		truth := 1 - math.Log(p)
		if !(b.CI.Lo < b.Value && b.Value < b.CI.Hi) || b.Value <= last || truth > b.CI.Hi || truth < b.CI.Lo {
			t.Errorf("the bound for %g is %+v after %v; the true value is %v", p, b, last, truth)
		}
		last = b.Value
	}
	for _, c := range []struct {
		p       float64
		samples int
	}{{1e-7, 100_000}, {0.5, 0}, {0, 0}, {math.NaN(), 0}, {-1, 0}} {
		_, err := m.Bound(c.p)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Test != Range || refusal.Samples != c.samples {
			t.Errorf("the bound for %g: %v; want a refusal with %d samples", c.p, err, c.samples)
		}
	}
	for n, want := range map[int][]float64{1000: {1e-4, 1e-5}, 1001: {1e-4, 1e-5}, 10_000: {1e-5, 1e-6}, 999_999: {1e-6, 1e-7}, 1_000_000: {1e-7, 1e-8}} {
		got := (&Model{N: n}).Beyond()
		for i := range want {
			if len(got) != len(want) || math.Abs(got[i]/want[i]-1) > 1e-9 {
				t.Errorf("%d samples have bounds for %v, want %v", n, got, want)
				break
			}
		}
	}
}

func TestFitDoesNotChangeTheSeries(t *testing.T) {
	s := Of(exponential(random(1), 5000))
	original := slices.Clone(s.Values)
	if _, err := Fit(s); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(original, s.Values) {
		t.Error("Fit sorted the caller's values")
	}
}

func TestWeight(t *testing.T) {
	r := random(2)
	for shape, want := range map[float64]Weight{-0.3: Light, 0: Exponential, 0.3: Heavy} {
		y := make([]float64, 1000)
		for i := range y {
			y[i] = GPD{1, shape}.draw(r)
		}
		if v := VariationOf(y); v.Weight() != want {
			t.Errorf("shape %v: %+v is %q, want %q", shape, v, v.Weight(), want)
		}
	}
}
