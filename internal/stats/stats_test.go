package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
)

// A power of two scales floating-point numbers without rounding, so that equality is exact.
const scale = 8

func TestSummarizeIsEquivariant(t *testing.T) {
	r := random(1)
	for _, n := range []int{6, 7, 20, 201} {
		series := lognormal.series(r, n, 1)
		s := Summarize(series)
		multiple := Summarize(times(series, scale))
		near(t, "median", multiple.Median, scale*s.Median, 0)
		near(t, "lower end", multiple.CI.Lo, scale*s.CI.Lo, 0)
		near(t, "upper end", multiple.CI.Hi, scale*s.CI.Hi, 0)
		near(t, "MAD", multiple.MAD, scale*s.MAD, 0)
		near(t, "relative half-width", relativeHalfWidth(multiple.Median, *multiple.CI), relativeHalfWidth(s.Median, *s.CI), 0)
		expect.Equal(t, fmt.Sprintf("n = %d: the unit changes the warnings", n), s.Warnings, multiple.Warnings)
	}
}

func times(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = factor * v
	}
	return out
}

// Invariant sample-order.
func TestSummarizeIgnoresOrder(t *testing.T) {
	series := normal.series(random(1), 50, 1)
	s := Summarize(series)
	permutation := slices.Clone(series)
	random(2).Shuffle(len(permutation), func(i, j int) { permutation[i], permutation[j] = permutation[j], permutation[i] })
	second := Summarize(permutation)
	// The order of a sum changes its last bits.
	near(t, "mean", second.Mean, s.Mean, 1e-14)
	near(t, "standard deviation", second.SD, s.SD, 1e-14)
	s.Warnings, s.Mean, s.SD = second.Warnings, second.Mean, second.SD
	expect.Equal(t, "the order of the values changes the summary", s, second)
}

// Invariant sample-order.
func TestArgumentsAreNotChanged(t *testing.T) {
	r := random(1)
	a, b := normal.series(r, 20, 1), normal.series(r, 20, 1)
	targets := run(r, normal, normal, 20, 1, 1)
	family := []Comparison{Compare(targets[0], targets[1], Lower, 1)}
	p := []float64{0.3, 0.1, 0.2}
	original := []any{slices.Clone(a), slices.Clone(b), slices.Clone(targets[0]), slices.Clone(targets[1]), slices.Clone(family), slices.Clone(p)}
	Summarize(a)
	CompareUnpaired(a, b, Lower)
	Compare(targets[0], targets[1], Lower, 1)
	Judge(family, 0.001, 0)
	Holm(p)
	expect.Equal(t, "an argument was changed", original, []any{a, b, targets[0], targets[1], family, p})
}

func TestSameSeedSameResult(t *testing.T) {
	r := random(1)
	targets := run(r, lognormal, normal, 20, 1, 1.2)
	expect.Equal(t, "the same seed gives another comparison", Compare(targets[0], targets[1], Lower, 7), Compare(targets[0], targets[1], Lower, 7))
}

func TestCompareInverts(t *testing.T) {
	r := random(1)
	for _, n := range []int{6, 7, 20, 101} {
		targets := run(r, lognormal, normal, n, 1, 1.2)
		first, back := Compare(targets[0], targets[1], Lower, 1), Compare(targets[1], targets[0], Lower, 1)
		near(t, "ratio", back.Ratio, 1/first.Ratio, 1e-12)
		near(t, "p-value", back.P, first.P, 0)
		near(t, "lower end", back.CI.Lo, 1/first.CI.Hi, 1e-12)
		near(t, "upper end", back.CI.Hi, 1/first.CI.Lo, 1e-12)

		a, b := values(targets[0]), values(targets[1])
		first, back = CompareUnpaired(a, b, Lower), CompareUnpaired(b, a, Lower)
		near(t, "unpaired ratio", back.Ratio, 1/first.Ratio, 1e-12)
		near(t, "unpaired p-value", back.P, first.P, 1e-12)
		near(t, "unpaired lower end", back.CI.Lo, 1/first.CI.Hi, 0.05)
		near(t, "unpaired upper end", back.CI.Hi, 1/first.CI.Lo, 0.05)
	}
}

func TestCompareIgnoresUnitAndOrder(t *testing.T) {
	r := random(1)
	targets := run(r, lognormal, normal, 20, 1, 1.2)
	want := Compare(targets[0], targets[1], Lower, 1)
	var a, b []Sample
	for i := range targets[0] {
		last := len(targets[0]) - 1 - i
		a = append(a, Sample{targets[0][last].Block, scale * targets[0][last].Value})
		b = append(b, Sample{targets[1][i].Block, scale * targets[1][i].Value})
	}
	got := Compare(a, b, Lower, 1)
	near(t, "ratio", got.Ratio, want.Ratio, 1e-12)
	near(t, "lower end", got.CI.Lo, want.CI.Lo, 1e-12)
	near(t, "upper end", got.CI.Hi, want.CI.Hi, 1e-12)
	near(t, "p-value", got.P, want.P, 0)
}

func TestComparePairsBlocks(t *testing.T) {
	var a, b []Sample
	for block := range 8 {
		a = append(a, Sample{block, float64(block + 1)})
		// The median of three samples in a block counts.
		b = append(b, Sample{block, 2 * float64(block+1)}, Sample{block, 1000}, Sample{block, 0.001})
	}
	a = append(a, Sample{100, 1e9}) // no partner
	c := Compare(a, b, Lower, 1)
	near(t, "ratio", c.Ratio, 2, 1e-15)
	near(t, "lower end", c.CI.Lo, 2, 1e-15)
	near(t, "upper end", c.CI.Hi, 2, 1e-15)
	if c.N != 8 || c.Verdict != Slower || c.P != 2.0/256 || c.MinP != c.P {
		t.Errorf("eight blocks with b = 2a compare as %+v", c)
	}
	if c := Compare(a, b, Higher, 1); c.Verdict != Faster {
		t.Errorf("twice the score is %q", c.Verdict)
	}
}

func TestTooFewAndNotComparable(t *testing.T) {
	six := []float64{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name  string
		a, b  []float64
		want  Verdict
		ratio float64
	}{
		{"none", nil, nil, TooFew, math.NaN()},
		{"five", six[:5], six[:5], TooFew, 1},
		{"zero", six, []float64{1, 2, 3, 0, 5, 6}, NotComparable, math.NaN()},
		{"negative", []float64{1, 2, 3, -1, 5, 6}, six, NotComparable, math.NaN()},
		{"infinite", six, []float64{1, 2, 3, math.Inf(1), 5, 6}, NotComparable, math.NaN()},
	} {
		for method, got := range map[string]Comparison{
			"paired":   Compare(fromValues(c.a...), fromValues(c.b...), Lower, 1),
			"unpaired": CompareUnpaired(c.a, c.b, Lower),
		} {
			if got.Verdict != c.want || got.CI != nil || !math.IsNaN(got.P) || !math.IsNaN(got.Adjusted) || !math.IsInf(got.Detectable, 1) {
				t.Errorf("%s, %s: %+v, want %q without interval and p-value", c.name, method, got, c.want)
			}
			if got.Ratio != c.ratio && !(math.IsNaN(got.Ratio) && math.IsNaN(c.ratio)) {
				t.Errorf("%s, %s: ratio %g, want %g", c.name, method, got.Ratio, c.ratio)
			}
		}
	}
}

// Invariant lost-trials.
func TestJudge(t *testing.T) {
	nan := math.NaN()
	fall, rise := &Interval{0.8, 0.9}, &Interval{1.1, 1.2}
	point, span := &Interval{0.98, 1.02}, &Interval{0.7, 1.4}
	untested := Comparison{P: nan, Adjusted: nan, Verdict: NotComparable, Detectable: math.Inf(1)}
	one := func(n int, direction Direction, ci *Interval, p float64) Comparison {
		return Comparison{N: n, Better: direction, Ratio: math.Sqrt(ci.Lo * ci.Hi), CI: ci, P: p, MinP: math.Ldexp(1, 1-n), LogSE: 0.01}
	}
	lose := func(c Comparison, baseline, candidate float64) Comparison {
		c.Lost = Losses{Baseline: baseline, Other: candidate}
		return c
	}
	for _, c := range []struct {
		name   string
		family []Comparison
		want   []Verdict
	}{
		{"better with lost trials", []Comparison{
			lose(one(20, Lower, fall, 0.0001), 0, 0.06), lose(one(20, Higher, rise, 0.0001), 0, 0.06), lose(one(20, Lower, fall, 0.0001), 0, 0.05),
			lose(one(20, Lower, fall, 0.0001), 0.5, 0),
		}, []Verdict{TrialsLost, TrialsLost, Faster, Faster}},
		{"worse with lost trials", []Comparison{
			lose(one(20, Lower, rise, 0.0001), 0, 0.5), lose(one(20, Lower, rise, 0.0001), 0.06, 0), lose(one(20, Higher, fall, 0.0001), 0.06, 0),
		}, []Verdict{Slower, TrialsLost, TrialsLost}},
		{"none shown with lost trials", []Comparison{lose(one(20, Lower, point, 0.2), 0.5, 0.5)}, []Verdict{NoDifference}},
		{"by direction", []Comparison{
			one(20, Lower, fall, 0.0001), one(20, Lower, rise, 0.0001), one(20, Higher, fall, 0.0001), one(20, Higher, rise, 0.0001),
		}, []Verdict{Faster, Slower, Slower, Faster}},
		{"the test alone decides", []Comparison{one(20, Lower, &Interval{1, 1.2}, 0.0001), one(20, Lower, fall, 0.2)}, []Verdict{Slower, NoDifference}},
		{"wide", []Comparison{one(20, Lower, span, 0.2)}, []Verdict{TooNoisy}},
		{"six blocks suffice for one", []Comparison{one(6, Lower, fall, 0.03125)}, []Verdict{Faster}},
		{"but not for two", []Comparison{one(6, Lower, fall, 0.03125), one(6, Lower, fall, 0.03125)}, []Verdict{TooFew, TooFew}},
		{"unless Holm comes to them last", []Comparison{one(6, Lower, fall, 0.03125), one(20, Lower, fall, 0.0001)}, []Verdict{Faster, Faster}},
		{"the untested do not count", []Comparison{untested, one(6, Lower, fall, 0.03125)}, []Verdict{NotComparable, Faster}},
		{"none", nil, nil},
	} {
		verdicts := Judge(c.family, Alpha, 0)
		for i, want := range c.want {
			if verdicts[i].Verdict != want {
				t.Errorf("%s: comparison %d is judged %q, want %q", c.name, i, verdicts[i].Verdict, want)
			}
			if blind := verdicts[i].Verdict == TooFew || verdicts[i].Verdict == NotComparable; math.IsInf(verdicts[i].Detectable, 1) != blind {
				t.Errorf("%s: comparison %d is judged %q, but detects %g", c.name, i, verdicts[i].Verdict, verdicts[i].Detectable)
			}
		}
	}
}

func TestBlocksNeeded(t *testing.T) {
	for m, want := range map[int]int{0: 6, 1: 6, 5: 8, 30: 11, 300: 14} {
		got := BlocksNeeded(m)
		if got != want {
			t.Errorf("BlocksNeeded(%d) = %d, want %d", m, got, want)
		}
		if got > MinSamples && math.Ldexp(1, 2-got)*float64(m) < Alpha {
			t.Errorf("a family of %d needs less than %d blocks", m, got)
		}
	}
}

func TestSummarizeSmallAndBad(t *testing.T) {
	one := Summarize([]float64{3})
	if one.N != 1 || one.Median != 3 || one.Mean != 3 || one.SD != 0 || one.MAD != 0 || one.Min != 3 || one.Max != 3 || one.CI != nil {
		t.Errorf("one sample: %+v", one)
	}
	for name, bad := range map[string][]float64{"none": nil, "NaN": {1, 2, 3, 4, 5, math.NaN()}, "infinite": {1, 2, 3, 4, 5, math.Inf(-1)}} {
		s := Summarize(bad)
		for _, estimate := range []float64{s.Median, s.Mean, s.SD, s.Min, s.Max, s.MAD} {
			if !math.IsNaN(estimate) {
				t.Errorf("%s: an estimate is %g, want NaN", name, estimate)
			}
		}
		if s.N != len(bad) || s.CI != nil || s.P90 != nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	summary := Summarize(slices.Repeat([]float64{math.MaxFloat64}, 6))
	if summary.Median != math.MaxFloat64 {
		t.Errorf("the median of huge values is %g", summary.Median)
	}
}

func TestPercentilesNeedTwoSamplesAbove(t *testing.T) {
	for _, c := range []struct {
		n             int
		p90, p95, p99 float64 // 0: none
	}{
		{19, 0, 0, 0}, {20, 18, 0, 0}, {39, 36, 0, 0}, {40, 36, 38, 0}, {199, 180, 190, 0}, {200, 180, 190, 198},
	} {
		series := make([]float64, c.n)
		for i := range series {
			series[i] = float64(c.n - i)
		}
		s := Summarize(series)
		for name, pair := range map[string]struct {
			got  *float64
			want float64
		}{"P90": {s.P90, c.p90}, "P95": {s.P95, c.p95}, "P99": {s.P99, c.p99}} {
			if (pair.got != nil) != (pair.want != 0) || pair.got != nil && *pair.got != pair.want {
				t.Errorf("%s of %d values: %v, want %g", name, c.n, pair.got, pair.want)
			}
		}
	}
}

func TestRelativeHalfWidth(t *testing.T) {
	for _, c := range []struct {
		median float64
		ci     Interval
		want   float64
	}{
		{10, Interval{9, 11}, 0.1},
		{-10, Interval{-11, -9}, 0.1},
		{0, Interval{0, 0}, 0},
		{0, Interval{-1, 1}, math.Inf(1)},
	} {
		if got := relativeHalfWidth(c.median, c.ci); got != c.want {
			t.Errorf("half-width of %v around %g is %g, want %g", c.ci, c.median, got, c.want)
		}
	}
}

func TestSelectRank(t *testing.T) {
	r := random(1)
	for range 2000 {
		list := make([]float64, 1+r.IntN(30))
		for i := range list {
			list[i] = float64(r.IntN(10))
		}
		sorted := slices.Sorted(slices.Values(list))
		k := r.IntN(len(list))
		if got := selectRank(slices.Clone(list), k); got != sorted[k] {
			t.Fatalf("rank %d of %v is %g, want %g", k, list, got, sorted[k])
		}
	}
}

func TestMidranks(t *testing.T) {
	got := Midranks([]float64{3, 1, 3, 2, 3 + 1e-12}, roundingError)
	if want := []float64{4, 1, 4, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("midranks are %v, want %v", got, want)
	}
}
