package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// Hollander and Wolfe, Nonparametric statistical methods, example 9.3: cloud seeding in five years. Each of ten slopes follows by hand.
func TestSlopeOfCloudSeeding(t *testing.T) {
	slopes := pairSlopes([]float64{1, 2, 3, 4, 5}, []float64{1.26, 1.27, 1.12, 1.16, 1.03})
	near(t, "slope", median(slopes), -0.05625, 1e-12)
	near(t, "smallest", slopes[0], -0.15, 1e-12)
	near(t, "largest", slopes[9], 0.04, 1e-12)
}

// joined are the data of Bacon and Watts, Estimating the transition between two intersecting straight lines, Biometrika 58 (1971)
// 525, table 1: the height of a stagnant layer of water by the flow rate, both as logarithms. Values of one flow rate are averaged.
func joined() (x, y []float64) {
	for _, p := range [][2]float64{
		{-1.39, 1.12},
		{-1.08, 1.01},
		{-0.94, 0.92},
		{-0.80, 0.90},
		{-0.63, 0.82},
		{-0.25, 0.66},
		{-0.12, 0.595},
		{0.01, 0.51},
		{0.11, 0.43333333},
		{0.25, 0.315},
		{0.34, 0.245},
		{0.44, 0.13},
		{0.59, -0.01},
		{0.70, -0.135},
		{0.85, -0.315},
		{0.99, -0.445},
		{1.19, -0.65},
	} {
		x, y = append(x, p[0]), append(y, p[1])
	}
	return x, y
}

// The published estimates are a change at 0.03 with the slopes −0.42 and −1.01 (BUGS examples, Stagnant, after Carlin, Gelfand and
// Smith, Applied Statistics 41 (1992) 389).
func TestKneeOfBaconAndWatts(t *testing.T) {
	x, y := joined()
	h := newHinges(x)
	_, best := h.best(y)
	k, residuals := h.fit(y, best)
	if k.At != 0.01 && k.At != 0.11 {
		t.Errorf("the lines meet at %v, want a place beside 0.03", k.At)
	}
	near(t, "slope before", k.Before, -0.42, 0.02)
	near(t, "slope after", k.After, -1.01, 0.03)
	for i, r := range residuals {
		if math.Abs(r) > 0.04 {
			t.Errorf("the residual at %v is %v", x[i], r)
		}
	}
}

// trendErrors are sources of errors without a trend.
var trendErrors = map[string]func(r *rand.Rand, n int) []float64{
	"normal": func(r *rand.Rand, n int) []float64 { return autoregressive(r, n, 0) },
	// A start is rarely faster and often slower than usual.
	"skewed": func(r *rand.Rand, n int) []float64 {
		e := make([]float64, n)
		for i := range e {
			e[i] = math.Exp(r.NormFloat64())
		}
		return e
	},
	"outliers": func(r *rand.Rand, n int) []float64 {
		e := autoregressive(r, n, 0)
		for i := range e {
			if r.IntN(20) == 0 {
				e[i] += 20
			}
		}
		return e
	},
	"correlated": func(r *rand.Rand, n int) []float64 { return autoregressive(r, n, 0.4) },
}

func autoregressive(r *rand.Rand, n int, correlation float64) []float64 {
	e := make([]float64, n)
	last := r.NormFloat64() / math.Sqrt(1-correlation*correlation)
	for i := range e {
		last = correlation*last + r.NormFloat64()
		e[i] = last
	}
	return e
}

func counting(n int) []float64 {
	places := make([]float64, n)
	for i := range places {
		places[i] = float64(i + 1)
	}
	return places
}

// A straight line has a false knee in at most 5 % of the runs, and the interval of its slope covers the slope. The bounds allow two
// standard errors of the simulation. With correlated errors the interval covers the slope in about 93 % of the runs of 20 places.
func TestTrendWithoutKnee(t *testing.T) {
	runs := simulation.Trials(t, 100, 400)
	const slope = 0.1
	for name, source := range trendErrors {
		for _, n := range []int{MinKneePlaces, 50} {
			r := rand.New(rand.NewPCG(11, uint64(n)))
			knees, coverCount := 0, 0
			for seed := range runs {
				values := source(r, n)
				for i := range values {
					values[i] += slope * float64(i+1)
				}
				trend := FitTrend(counting(n), values, uint64(seed))
				knees += count(trend.Knee != nil)
				coverCount += count(covers(*trend.CI, slope))
			}
			t.Logf("%s, %d places: %d false knees, %d of %d intervals cover the slope", name, n, knees, coverCount, runs)
			simulation.AtMost(t, Alpha, knees, runs, "%s, %d places: lines with a knee", name, n)
			simulation.AtLeast(t, 0.92, coverCount, runs, "%s, %d places: intervals that cover the slope", name, n)
		}
	}
}

// The fifteen last of fifty places, with a slope of 0.8 standard deviations, are found.
func TestTrendWithKnee(t *testing.T) {
	runs := simulation.Trials(t, 40, 100)
	for name, source := range trendErrors {
		r := rand.New(rand.NewPCG(13, 1))
		found, inRange := 0, 0
		for seed := range runs {
			values := source(r, 50)
			for i := range values {
				values[i] += 0.8 * max(0, float64(i+1)-35)
			}
			if k := FitTrend(counting(50), values, uint64(seed)).Knee; k != nil {
				found++
				inRange += count(k.Range.Lo <= 35 && 35 <= k.Range.Hi)
			}
		}
		t.Logf("%s: found %d of %d, %d ranges cover the place", name, found, runs, inRange)
		simulation.AtLeast(t, 0.85, found, runs, "%s: found", name)
		simulation.AtLeast(t, 0.85, inRange, found, "%s: ranges that cover the place", name)
	}
}

// Without errors the fit is exact, also if places are grouped.
func TestTrendIsExact(t *testing.T) {
	for _, n := range []int{MinTrendPlaces, 50, 1200} {
		values := counting(n)
		for i := range values {
			values[i] = 3 + 0.25*values[i]
		}
		trend := FitTrend(counting(n), values, 1)
		near(t, "slope", trend.Slope, 0.25, 1e-9)
		near(t, "value", trend.Fitted(8), 5, 1e-6)
		if trend.N != n || !trend.Shown() || trend.Knee != nil {
			t.Errorf("%d places: %+v", n, trend)
		}
		for i := range values {
			values[i] += 2 * max(0, float64(i+1)-float64(n/2))
		}
		trend = FitTrend(counting(n), values, 1)
		if n < MinKneePlaces {
			continue
		}
		if k := trend.Knee; k == nil || math.Abs(k.At-float64(n/2)) > float64(n)/100+1 || math.Abs(k.Before-0.25) > 0.02 || math.Abs(k.After-2.25) > 0.03 {
			t.Errorf("%d places: the knee is %+v", n, k)
		}
	}
}

func TestTrendRefuses(t *testing.T) {
	places, values := counting(MinTrendPlaces), counting(MinTrendPlaces)
	infinite := counting(MinTrendPlaces)
	infinite[3] = math.Inf(1)
	for name, in := range map[string][2][]float64{
		"few places":        {places[1:], values[1:]},
		"different lengths": {places, values[1:]},
		"equal places":      {append([]float64{1}, places[:MinTrendPlaces-1]...), values},
		"infinite":          {places, infinite},
		"nothing":           {nil, nil},
	} {
		if trend := FitTrend(in[0], in[1], 1); !math.IsNaN(trend.Slope) || trend.CI != nil || trend.Knee != nil || trend.Shown() {
			t.Errorf("%s: %+v", name, trend)
		}
	}
	flat := FitTrend(counting(30), make([]float64, 30), 1)
	if flat.Slope != 0 || flat.Shown() || flat.Knee != nil {
		t.Errorf("a flat series: %+v", flat)
	}
}

// The interval of ten values by hand: the variance of Kendall's statistic is 10·9·25/18 = 125, and 1.96·√125 = 21.9. So the interval
// extends from slope (45 − 21.9)/2 = 11 of 45 to slope (45 + 21.9)/2 + 1 = 35.
func TestSenInterval(t *testing.T) {
	places, values := counting(10), []float64{5, 1, 4, 3, 8, 6, 10, 7, 12, 9}
	slopes := pairSlopes(places, values)
	ci := senInterval(slopes, values, 0)
	if ci.Lo != slopes[10] || ci.Hi != slopes[34] {
		t.Errorf("the interval is %+v, want %v to %v", ci, slopes[10], slopes[34])
	}
	if spread := senInterval(slopes, values, 0.5); spread.Lo >= ci.Lo || spread.Hi <= ci.Hi {
		t.Errorf("correlated errors give %+v, want more than %+v", spread, ci)
	}
}
