package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The smallest numbers of places. Below MinTrendPlaces the normal approximation of Sen's interval fails. Below MinKneePlaces each of
// two lines would have too few places.
const (
	MinTrendPlaces = 10
	MinKneePlaces  = 20
)

const (
	// mostTrendPlaces and mostKneePlaces bound the effort, which grows with the square of the number of places. Adjacent places of a
	// longer series are grouped, and each group is its median.
	mostTrendPlaces = 500
	mostKneePlaces  = 100
	// kneeSide is the smallest share of the places on each side of a knee, kneeLeast their smallest number.
	kneeSide  = 0.1
	kneeLeast = 5
	// nullSeries is the number of random series without a knee.
	nullSeries = 999
	// clip is the largest distance of a value from the line, in standard deviations by the median absolute deviation. One slow start
	// among fifty must not bend the line.
	clip = 4
)

// Trend is a value as a function of a place, such as the time of a start as a function of the number of running containers.
type Trend struct {
	N int // places
	// Slope is the change of the value from place to place, Intercept the line's value at place 0. Both are NaN below MinTrendPlaces.
	Slope, Intercept float64
	// CI is the interval of Slope.
	CI *Interval
	// Knee is nil if none is shown. Below MinKneePlaces none is sought.
	Knee *Knee
}

// Shown reports whether the interval of the slope excludes zero.
func (t Trend) Shown() bool { return t.CI != nil && (t.CI.Lo > 0 || t.CI.Hi < 0) }

// Fitted is the value of the fitted line at a place: of two lines if there is a knee.
func (t Trend) Fitted(place float64) float64 {
	if k := t.Knee; k != nil {
		if place < k.At {
			return k.Value + k.Before*(place-k.At)
		}
		return k.Value + k.After*(place-k.At)
	}
	return t.Intercept + t.Slope*place
}

// Knee is the place where two straight lines of different slopes meet.
type Knee struct {
	At, Value float64
	// Range holds the places that fit nearly as well: a 95 % interval.
	Range Interval
	// Before and After are the slopes of the two lines.
	Before, After float64
	// P is the probability of lines at least as different in a series without a knee.
	P float64
}

// FitTrend fits a line to values at ascending places, and looks for a knee. The values must not accumulate: see CumulativeLine.
//
// The slope is the median of the slopes between all pairs of places (Theil, Indagationes Mathematicae 12 (1950) 85, 386 and 467).
// It holds with up to 29 % outliers. The intercept is the median of y − slope·x. The interval is Sen's (Estimates of the regression
// coefficient based on Kendall's tau, JASA 63 (1968) 1379), in the form of Hollander and Wolfe, Nonparametric statistical methods,
// section 9.3. It assumes independent errors. If the errors correlate with their neighbours, the variance of Kendall's statistic is
// multiplied by 1 + 2 Σ (1 − k/n) rᵏ (Yue and Wang, Water Resources Management 18 (2004) 201).
//
// A knee is two lines that meet, fitted by least squares (Hinkley, Inference in two-phase regression, JASA 66 (1971) 736), with
// each place as a candidate. The test compares the largest reduction of the sum of squares over all candidates with the reductions in
// random series without a knee. These series have the residuals of the two lines in random order, and the same correlation between
// neighbours (a sieve bootstrap: Bühlmann, Bernoulli 3 (1997) 123). So the test needs no normal distribution, and the search
// over candidates costs no level. Values far from the line are clipped first.
func FitTrend(places, values []float64, seed uint64) Trend {
	t := Trend{N: len(places), Slope: math.NaN(), Intercept: math.NaN()}
	if len(places) != len(values) || t.N < MinTrendPlaces || !allFinite(places) || !allFinite(values) || !ascending(places) {
		return t
	}
	x, y := grouped(places, values, mostTrendPlaces)
	slopes := pairSlopes(x, y)
	t.Slope = median(slopes)
	rest := make([]float64, len(x))
	for i := range x {
		rest[i] = y[i] - t.Slope*x[i]
	}
	t.Intercept = Median(rest)
	t.CI = senInterval(slopes, y, correlation(rest, 2))
	if t.N >= MinKneePlaces {
		t.Knee = findKnee(x, y, t, seed)
	}
	return t
}

func ascending(places []float64) bool {
	for i := 1; i < len(places); i++ {
		if places[i] <= places[i-1] {
			return false
		}
	}
	return true
}

// grouped joins adjacent places to at most a number of groups. A group is the mean of its places and the median of its values.
func grouped(places, values []float64, limit int) (x, y []float64) {
	size := (len(places) + limit - 1) / limit
	for start := 0; start < len(places); start += size {
		end := min(start+size, len(places))
		x, y = append(x, stat.Mean(places[start:end], nil)), append(y, Median(values[start:end]))
	}
	return x, y
}

// pairSlopes returns the slopes between all pairs of points, sorted.
func pairSlopes(x, y []float64) []float64 {
	slopes := make([]float64, 0, len(x)*(len(x)-1)/2)
	for i := range x {
		for k := i + 1; k < len(x); k++ {
			slopes = append(slopes, (y[k]-y[i])/(x[k]-x[i]))
		}
	}
	slices.Sort(slopes)
	return slopes
}

// senInterval is the interval of the median of sorted slopes. r is the correlation of neighbouring errors.
func senInterval(slopes, y []float64, r float64) *Interval {
	n := float64(len(y))
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range tieSizes(y) {
		variance -= t * (t - 1) * (2*t + 5)
	}
	variance = variance / 18 * inflation(r, len(y))
	c := distuv.UnitNormal.Quantile(0.975) * math.Sqrt(variance)
	lo := int(math.Floor((float64(len(slopes))-c)/2)) - 1
	hi := int(math.Ceil((float64(len(slopes)) + c) / 2))
	return &Interval{Lo: slopes[max(lo, 0)], Hi: slopes[min(hi, len(slopes)-1)]}
}

// tieSizes returns the number of values in each group of equal values.
func tieSizes(values []float64) (sizes []float64) {
	sorted := Sorted(values)
	for start := 0; start < len(sorted); {
		end := start
		for end < len(sorted) && sorted[end] == sorted[start] {
			end++
		}
		sizes = append(sizes, float64(end-start))
		start = end
	}
	return sizes
}

// inflation is the variance of a sum of n correlated errors over the variance of a sum of independent ones.
func inflation(r float64, n int) float64 {
	sum, power := 1.0, 1.0
	for k := 1; k < n; k++ {
		power *= r
		sum += 2 * (1 - float64(k)/float64(n)) * power
	}
	return sum
}

// correlation estimates the correlation of neighbouring errors from the residuals of a line, by their ranks, so that an outlier does not
// hide it. A fit of so many parameters makes the residuals of a short series less correlated than the errors, by about
// (parameters − 1 + 2 r·parameters) / n (Kendall, Biometrika 41 (1954) 403, for a mean). The result is corrected for that, and not negative.
func correlation(residuals []float64, parameters float64) float64 {
	return rankCorrelation(Midranks(residuals, 0), parameters)
}

// rankCorrelation is correlation for the ranks of residuals.
func rankCorrelation(ranks []float64, parameters float64) float64 {
	n := float64(len(ranks))
	r := autocorrelation(ranks, 1)
	if math.IsNaN(r) { // all are equal
		return 0
	}
	return min(max((n*r+parameters-1)/(n-2*parameters), 0), 0.95)
}

// findKnee returns the knee of a series with the given line, or nil.
func findKnee(x, y []float64, line Trend, seed uint64) *Knee {
	x, y = grouped(x, y, mostKneePlaces)
	y = clipped(x, y, line)
	h := newHinges(x)
	share, best := h.best(y)
	if share == 0 {
		return nil
	}
	k, residuals := h.fit(y, best)
	r := correlation(residuals, 4)
	// An estimate that is too low makes knees of waves. Its standard error is about 1/√n.
	r = min(r+1/math.Sqrt(float64(len(x))), 0.95)
	k.P = h.chance(residuals, r, share, seed)
	if k.P > Alpha {
		return nil
	}
	k.Range = h.near(y, best, inflation(r, len(x)))
	return &k
}

// clipped moves values that are far from the line closer to it.
func clipped(x, y []float64, line Trend) []float64 {
	distances := make([]float64, len(y))
	for i := range y {
		distances[i] = math.Abs(y[i] - line.Intercept - line.Slope*x[i])
	}
	limit := clip * 1.4826 * Median(distances)
	out := slices.Clone(y)
	for i := range out {
		prediction := line.Intercept + line.Slope*x[i]
		out[i] = min(max(out[i], prediction-limit), prediction+limit)
	}
	return out
}

// hinges are the candidates for a knee. Each is the unit vector of (x − at)₊ without its part along a straight line, so that the
// square of its product with a series is the reduction of the sum of squares by the second line.
type hinges struct {
	x       []float64
	line    [2][]float64 // unit vectors of a straight line
	at      []float64
	vectors [][]float64
}

func newHinges(x []float64) hinges {
	h := hinges{x: x}
	one := make([]float64, len(x))
	for i := range one {
		one[i] = 1
	}
	h.line[0] = unit(one)
	h.line[1] = unit(without(x, h.line[0]))
	side := max(kneeLeast, int(kneeSide*float64(len(x))))
	for k := side; k < len(x)-side; k++ {
		hinge := make([]float64, len(x))
		for i := range x {
			hinge[i] = max(x[i]-x[k], 0)
		}
		h.at, h.vectors = append(h.at, x[k]), append(h.vectors, unit(h.bent(hinge)))
	}
	return h
}

// bent is a series without its straight line.
func (h hinges) bent(y []float64) []float64 { return without(without(y, h.line[0]), h.line[1]) }

// best returns the largest share of the sum of squares around a line that a second line explains, and the candidate.
func (h hinges) best(y []float64) (share float64, candidate int) {
	e := h.bent(y)
	total := dot(e, e)
	if total == 0 {
		return 0, 0
	}
	for k, v := range h.vectors {
		if part := dot(v, e); part*part > share*total {
			share, candidate = part*part/total, k
		}
	}
	return share, candidate
}

// fit fits the two lines of a candidate.
func (h hinges) fit(y []float64, candidate int) (k Knee, residuals []float64) {
	e := h.bent(y)
	v := h.vectors[candidate]
	residuals = without(e, v)
	fit := make([]float64, len(y))
	for i := range y {
		fit[i] = y[i] - residuals[i]
	}
	place := h.at[candidate]
	n := slices.Index(h.x, place)
	last := len(h.x) - 1
	return Knee{
		At: place, Value: fit[n], Before: (fit[n] - fit[0]) / (place - h.x[0]), After: (fit[last] - fit[n]) / (h.x[last] - place),
	}, residuals
}

// chance is the share of random series without a knee that a second line explains at least as well. It stops counting above Alpha.
func (h hinges) chance(residuals []float64, r, share float64, seed uint64) float64 {
	innovations := make([]float64, len(residuals))
	for i := range residuals {
		innovations[i] = residuals[i]
		if i > 0 {
			innovations[i] -= r * residuals[i-1]
		}
	}
	random := rand.New(generator(seed, 1))
	series := make([]float64, len(residuals))
	hits := 0
	for count := 0; count < nullSeries && float64(hits) <= Alpha*nullSeries; count++ {
		random.Shuffle(len(innovations), func(i, k int) { innovations[i], innovations[k] = innovations[k], innovations[i] })
		last := innovations[0] / math.Sqrt(1-r*r) // the variance of a series that has lasted long
		for i := range series {
			if i > 0 {
				last = r*last + innovations[i]
			}
			series[i] = last
		}
		if found, _ := h.best(series); found >= share {
			hits++
		}
	}
	return float64(hits+1) / (nullSeries + 1)
}

// near returns the candidates whose sum of squares is within the 95 % interval of the likelihood of the best one.
func (h hinges) near(y []float64, best int, inflation float64) Interval {
	e := h.bent(y)
	total := dot(e, e)
	left := func(k int) float64 {
		part := dot(h.vectors[k], e)
		return total - part*part
	}
	limit := left(best) * (1 + inflation*distuv.ChiSquared{K: 1}.Quantile(0.95)/float64(len(y)-4))
	interval := Interval{Lo: h.at[best], Hi: h.at[best]}
	for k := range h.at {
		if left(k) <= limit {
			interval.Lo, interval.Hi = min(interval.Lo, h.at[k]), max(interval.Hi, h.at[k])
		}
	}
	return interval
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// unit returns a vector of length 1.
func unit(v []float64) []float64 {
	length := math.Sqrt(dot(v, v))
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] / length
	}
	return out
}

// without returns a vector minus its part along a unit vector.
func without(v, direction []float64) []float64 {
	part := dot(v, direction)
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] - part*direction[i]
	}
	return out
}
