package stats

import (
	"math"
	"slices"
)

// Effect is the result of one run: the log ratio of its two sides.
type Effect struct {
	// Log is the natural logarithm of other/baseline.
	Log float64
	// SE is the standard error of Log within the run. It weights the run; 0 or NaN is unknown.
	SE float64
}

// ShareNoise returns the effects with standard errors that follow from one variation within runs: SE_i = s/√N_i, where N_i is the
// number of blocks and s² the mean of SE_i² N_i. It is for runs of one plan on one machine. A standard error from ten blocks
// is itself uncertain by a quarter. With weights from such values, runs that are narrow by chance weigh too much, and a 95 %
// interval of eight runs covers 92.7 % (TestPooledErrorRates). If some SE or number is unknown (0 or NaN), all SE of the
// result are 0.
func ShareNoise(effects []Effect, blocks []int) []Effect {
	variance, ok := 0.0, true
	for i, e := range effects {
		variance += e.SE * e.SE * float64(blocks[i]) / float64(len(effects))
		ok = ok && e.SE > 0 && blocks[i] > 0
	}
	estimates := slices.Clone(effects)
	for i := range estimates {
		estimates[i].SE = 0
		if ok {
			estimates[i].SE = math.Sqrt(variance / float64(blocks[i]))
		}
	}
	return estimates
}

// Pooled is the result of several runs.
type Pooled struct {
	N int // runs
	// Log is the weighted mean of the runs' log ratios. It is NaN without a run.
	Log float64
	// SE is the standard error of Log after Hartung and Knapp. It is NaN below two runs.
	SE float64
	// Tau is the standard deviation between runs, apart from the variation within them, in units of Log. It
	// is NaN if the variation within some run is unknown.
	Tau float64
}

// Pool combines runs of the same comparison. Runs are the observations: the
// placement in memory and on CPUs differs from run to run, and its effect does not average out within a run (T. Kalibera & R. Jones, "Rigorous Benchmarking
// in Reasonable Time", ISMM 2013, sections 2 and 6).
//
// The model has random effects: run i estimates a ratio of its own, Log_i ~ N(θ_i, SE_i²), and θ_i ~ N(θ, τ²).
// The weights are 1/(SE_i² + τ²). τ² solves Σ w_i (Log_i − Log)² = N − 1, or is 0 without a solution (R. C. Paule &
// J. Mandel, J. Res. Natl. Bur. Stand. 87 (1982) 377–385). The standard error is
//
//	√( Σ w_i (Log_i − Log)² / ((N − 1) Σ w_i) )
//
// with Student's t of N − 1 degrees of freedom (J. Hartung & G. Knapp, Statistics in Medicine 20 (2001) 1771–1782 and
// 3875–3889). It follows from the observed differences between runs, and wrong SE_i change only the weights. Runs with equal SE
// have the textbook interval of a mean. We rejected the variant that never lets the standard error fall below 1/√Σw (Knapp &
// Hartung 2003): it relies on SE_i, and the error rates hold without it (TestPooledErrorRates).
//
// If some SE is 0 or not finite, all runs have the same weight. Effects whose Log is not finite do not count.
func Pool(effects []Effect) Pooled {
	effects = slices.DeleteFunc(slices.Clone(effects), func(e Effect) bool { return math.IsNaN(e.Log) || math.IsInf(e.Log, 0) })
	p := Pooled{N: len(effects), Log: math.NaN(), SE: math.NaN(), Tau: math.NaN()}
	if p.N == 0 {
		return p
	}
	ok := !slices.ContainsFunc(effects, func(e Effect) bool { return !(e.SE > 0) || math.IsInf(e.SE, 0) })
	if !ok {
		for i := range effects {
			effects[i].SE = 1
		}
	}
	tau2 := 0.0
	if ok {
		tau2 = pauleMandel(effects)
	}
	mean, weight, q := weighted(effects, tau2)
	p.Log = mean
	if p.N < 2 {
		return p
	}
	p.SE = math.Sqrt(q / float64(p.N-1) / weight)
	if ok {
		p.Tau = math.Sqrt(tau2)
	}
	return p
}

// weighted returns the weighted mean of effects, the sum of the weights, and the weighted sum of squares about the mean.
func weighted(effects []Effect, tau2 float64) (mean, weight, q float64) {
	for _, e := range effects {
		w := 1 / (e.SE*e.SE + tau2)
		weight += w
		mean += w * e.Log
	}
	mean /= weight
	for _, e := range effects {
		q += (e.Log - mean) * (e.Log - mean) / (e.SE*e.SE + tau2)
	}
	return mean, weight, q
}

// pauleMandel returns the variance between runs that makes the weighted sum of squares equal to its expectation. The sum falls as the
// variance grows, so bisection finds the solution.
func pauleMandel(effects []Effect) float64 {
	excess := func(tau2 float64) float64 {
		_, _, q := weighted(effects, tau2)
		return q - float64(len(effects)-1)
	}
	if excess(0) <= 0 {
		return 0
	}
	// With the variance Σ(Log − mean)² all terms of the sum of squares are below 1 together.
	lo, hi := 0.0, 0.0
	mean := 0.0
	for _, e := range effects {
		mean += e.Log / float64(len(effects))
	}
	for _, e := range effects {
		hi += (e.Log - mean) * (e.Log - mean)
	}
	for mid := midpoint(lo, hi); mid > lo && mid < hi; mid = midpoint(lo, hi) { // to the last bit
		if excess(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return midpoint(lo, hi)
}

// Interval returns the two-sided interval of Log with error probability alpha. It is infinite below two runs, and a point
// if all runs are equal.
func (p Pooled) Interval(alpha float64) Interval {
	if p.N < 2 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	if p.SE == 0 {
		return Interval{p.Log, p.Log}
	}
	half := p.SE * student(p.N).Quantile(1-alpha/2)
	return Interval{p.Log - half, p.Log + half}
}

// RunsNeeded estimates the number of such runs, at least lo, whose interval excludes a value at a distance from Log with a
// probability of [Power]: the usual formula of a sample size, with Student's t for the number itself. The variation
// between the runs so far is an estimate, and so is the result. It returns 0 if no number up to most is enough.
func (p Pooled) RunsNeeded(distance, alpha float64, lo, hi int) int {
	if !(p.SE >= 0) {
		return 0
	}
	sd := p.SE * math.Sqrt(float64(p.N))
	suffices := func(n int) bool {
		t := student(n)
		return (t.Quantile(1-alpha/2)+t.Quantile(Power))*sd/math.Sqrt(float64(n)) <= math.Abs(distance)
	}
	lo = max(2, lo)
	if distance == 0 || hi < lo || !suffices(hi) {
		return 0
	}
	for lo < hi {
		if mid := lo + (hi-lo)/2; suffices(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return hi
}
