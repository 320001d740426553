package tail

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The shapes that a fit considers. At −1 the tail is uniform, and from 1 on it has no mean.
const (
	minShape = -1
	maxShape = 1.5
)

// cautiousShape is the smallest shape of a bound. Below −0.5 the likelihood is not regular, and its intervals are too narrow (R. L. Smith,
// "Maximum likelihood estimation in a class of nonregular cases", Biometrika 72 (1985) 67). A bound of a tail that ends sooner is fitted with −0.5, and is
// too high.
const cautiousShape = -0.5

// GPD is the generalised Pareto distribution of excesses over a threshold (Coles, section 4.2): P(Y > y) = (1 + Shape·y/Scale)^(−1/Shape).
// Shape 0 is the exponential distribution. A negative shape has an end at −Scale/Shape.
type GPD struct{ Scale, Shape float64 }

// Survival is the probability of an excess above y.
func (g GPD) Survival(y float64) float64 { return math.Exp(-g.hazard(y)) }

// hazard is −log of the survival function: infinite from the end of the distribution on.
func (g GPD) hazard(y float64) float64 {
	if g.Shape == 0 {
		return y / g.Scale
	}
	ratio := g.Shape * y / g.Scale
	if ratio <= -1 {
		return math.Inf(1)
	}
	return math.Log1p(ratio) / g.Shape
}

// Quantile is the excess that is exceeded with probability p.
func (g GPD) Quantile(p float64) float64 {
	if g.Shape == 0 {
		return -g.Scale * math.Log(p)
	}
	return g.Scale * math.Expm1(-g.Shape*math.Log(p)) / g.Shape
}

// LogLikelihood is the logarithm of the density of the excesses (Coles, equation 4.10).
func (g GPD) LogLikelihood(excesses []float64) float64 {
	if !(g.Scale > 0) {
		return math.Inf(-1)
	}
	var hazards float64
	for _, y := range excesses {
		hazards += g.hazard(y)
	}
	return -float64(len(excesses))*math.Log(g.Scale) - (1+g.Shape)*hazards
}

// PWM estimates the distribution by probability-weighted moments (J. R. M. Hosking and J. R. Wallis, "Parameter and Quantile Estimation for
// the Generalized Pareto Distribution", Technometrics 29 (1987) 339, whose k is −Shape), with the plotting positions (i − 0.35)/n.
func PWM(excesses []float64) GPD {
	sorted := stats.Sorted(excesses)
	n := float64(len(sorted))
	var mean, weighted float64
	for i, y := range sorted {
		mean += y / n
		weighted += y * (1 - (float64(i)+0.65)/n) / n
	}
	divisor := mean - 2*weighted
	return GPD{Scale: 2 * mean * weighted / divisor, Shape: 2 - mean/divisor}
}

// MaxLikelihood estimates the distribution by maximum likelihood, with a shape from floor to 1.5. The excesses must be positive, and floor at least −1.
//
// With θ = Shape/Scale fixed, the best shape is the mean of log(1 + θy) (S. D. Grimshaw, Technometrics 35 (1993) 185), so that the search has one
// dimension. It begins at PWM. The search variable is log(1 + θ·max), which has no bounds.
func MaxLikelihood(excesses []float64, floor float64) GPD {
	peak := slices.Max(excesses)
	n := float64(len(excesses))
	solve := func(s float64) GPD {
		theta := math.Expm1(s) / peak
		var sum, logs float64
		for _, y := range excesses {
			sum += y
			logs += math.Log1p(theta * y)
		}
		if math.Abs(s) < 1e-8 {
			return GPD{Scale: sum / n}
		}
		return GPD{Scale: logs / n / theta, Shape: logs / n}
	}
	profile := func(s float64) float64 {
		g := solve(s)
		return -math.Log(g.Scale) - 1 - g.Shape // per excess
	}
	lo := boundary(func(s float64) bool { return solve(s).Shape < floor }, -30, 0)
	hi := boundary(func(s float64) bool { return solve(s).Shape < maxShape }, 0, 60)
	start := PWM(excesses)
	guess := math.Log1p(math.Max(start.Shape/start.Scale*peak, -1+1e-12))
	if !finite(guess) {
		guess = 0
	}
	s, _ := maximum(profile, lo, hi, guess, 1e-6)
	return solve(s)
}

// likelihoodDrop is the difference of log-likelihoods at the ends of a 95 % interval: half of a quantile of chi-square (Coles, theorem 2.6).
var likelihoodDrop = distuv.ChiSquared{K: 1}.Quantile(0.95) / 2

// QuantileInterval is the 95 % profile-likelihood interval of the excess that is exceeded with probability p (Coles, section 4.3.3), over shapes from
// −0.5 on. It is false if the likelihood does not bound it. g is the maximum-likelihood estimate over these shapes.
func QuantileInterval(excesses []float64, g GPD, p float64) (stats.Interval, bool) {
	peak, logR := slices.Max(excesses), -math.Log(p)
	profile := func(z float64) float64 {
		likelihood := func(shape float64) float64 {
			scale := z / logR
			if shape != 0 {
				scale = z * shape / math.Expm1(shape*logR)
			}
			return GPD{scale, shape}.LogLikelihood(excesses)
		}
		lo := cautiousShape
		if z < peak { // a shape below this one ends the distribution before the largest excess
			lo = max(lo, math.Log1p(-z/peak)/logR)
		}
		_, l := maximum(likelihood, lo, maxShape, g.Shape, inProfile)
		return l
	}
	return likelihoodInterval(profile, g.LogLikelihood(excesses), g.Quantile(p), 1e4)
}

// ShapeInterval is the 95 % profile-likelihood interval of the shape, over shapes from −0.5 on. An end is infinite if the likelihood does not bound it within the shapes
// of a fit.
func ShapeInterval(excesses []float64, g GPD) stats.Interval {
	peak := slices.Max(excesses)
	profile := func(shape float64) float64 {
		likelihood := func(logScale float64) float64 { return GPD{math.Exp(logScale), shape}.LogLikelihood(excesses) }
		centre := math.Log(g.Scale)
		lo := centre - 2
		if shape < 0 {
			lo = max(lo, math.Log(-shape*peak*(1+1e-9)))
		}
		_, l := maximum(likelihood, lo, max(lo, centre)+2, centre, inProfile)
		return l
	}
	limit := g.LogLikelihood(excesses) - likelihoodDrop
	ci := stats.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}
	if profile(cautiousShape) < limit {
		ci.Lo = boundary(func(shape float64) bool { return profile(shape) < limit }, cautiousShape, g.Shape)
	}
	if profile(maxShape) < limit {
		ci.Hi = boundary(func(shape float64) bool { return profile(shape) >= limit }, g.Shape, maxShape)
	}
	return ci
}

// likelihoodInterval is the values around best whose profile is at most likelihoodDrop below the maximum. It is false if a value factor times
// as large as best still belongs to it.
func likelihoodInterval(profile func(float64) float64, highest, best, factor float64) (stats.Interval, bool) {
	limit := highest - likelihoodDrop
	contains := func(logZ float64) bool { return profile(math.Exp(logZ)) >= limit }
	origin := math.Log(best)
	end := func(step float64) (float64, bool) {
		for edge := origin; math.Abs(edge-origin) < math.Log(factor); step *= 2 {
			inner := edge
			edge += step
			if contains(edge) {
				continue
			}
			if step > 0 {
				return boundary(contains, inner, edge), true
			}
			return boundary(func(z float64) bool { return !contains(z) }, edge, inner), true
		}
		return 0, false
	}
	lo, found := end(-0.1)
	if !found {
		return stats.Interval{}, false
	}
	hi, found := end(0.1)
	return stats.Interval{Lo: math.Exp(lo), Hi: math.Exp(hi)}, found
}

// precision is the precision of places: of the logarithm of an excess, of a shape, and of the search variable of a fit.
const precision = 1e-4

// inProfile is the relative precision of a place with the largest likelihood. Near the maximum the likelihood hardly depends on the place.
const inProfile = 2e-4

// boundary is the place between lo and hi where holds changes from true to false.
func boundary(holds func(float64) bool, lo, hi float64) float64 {
	for hi-lo > precision {
		if middle := (lo + hi) / 2; holds(middle) {
			lo = middle
		} else {
			hi = middle
		}
	}
	return (lo + hi) / 2
}

// maximum is the place and the size of the largest value of f between lo and hi: the best of a grid and of a start, refined by golden section to
// a share of the range.
func maximum(f func(float64) float64, lo, hi, start, share float64) (x, value float64) {
	const grid = 12
	step := (hi - lo) / grid
	x, value = lo, math.Inf(-1)
	for i := range grid + 1 {
		point := lo + float64(i)*step
		if v := f(point); v > value {
			x, value = point, v
		}
	}
	if lo < start && start < hi {
		if v := f(start); v > value {
			x, value = start, v
		}
	}
	a, b := max(lo, x-step), min(hi, x+step)
	golden := math.Phi - 1
	c, d := b-golden*(b-a), a+golden*(b-a)
	fc, fd := f(c), f(d)
	for b-a > share*(hi-lo) {
		if fc > fd {
			b, d, fd = d, c, fc
			c = b - golden*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + golden*(b-a)
			fd = f(d)
		}
	}
	if middle := f((a + b) / 2); middle >= value {
		return (a + b) / 2, middle
	}
	return x, value
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
