package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// MinNodes is the least number of nodes for a statement about a fleet. The spread between fewer nodes is hardly known: with five nodes
// the standard deviation is uncertain by a third, and a prediction of one more node has three degrees of freedom.
const MinNodes = 6

// MinKindNodes is the least number of nodes on each side of a difference between kinds.
const MinKindNodes = 3

// NodeEffect is the result of one node of a fleet: the log ratio of a target to the baseline within the node.
type NodeEffect struct {
	Effect
	// Blocks is the number of blocks behind the effect. Effect.SE has Blocks − 1 degrees of freedom.
	Blocks int
	// Kind names the nodes that are alike. Nodes of one kind have the same noise within them.
	Kind string
}

// Fleet is the result of the nodes of a fleet.
type Fleet struct {
	// Pooled is the mean over nodes. Tau is the spread between nodes, apart from the noise within them.
	Pooled
	// Noise is the standard error of a node's log ratio, as a mean over nodes. It is 0 if some noise is unknown: Spread then includes it.
	Noise float64
	// P is the two-sided p-value of the hypothesis that the mean log ratio is 0. It is NaN below two nodes.
	P float64
	// SpreadP is the p-value of the hypothesis that all nodes have the same ratio. Share is the share (0–1) of the variation between the nodes' ratios
	// that is no noise within nodes. Both are NaN if some noise is unknown.
	SpreadP, Share float64
}

// PoolNodes combines the nodes of a fleet. The node is the unit of observation, as the run is for [Pool], and the model is the same: random effects,
// the variance of Paule and Mandel, and the interval of Hartung and Knapp. Two things differ.
//
//   - The noise within nodes is shared among the nodes of a kind ([ShareNoise]), and not among all nodes.
//   - The standard error is at least 1/√Σw, the error that the noise within nodes alone gives (G. Knapp & J. Hartung, Statistics in Medicine 22 (2003)
//     2693–2710). Nodes that agree by chance would otherwise give an interval that is narrower than their own noise permits (C. Röver, G. Knapp &
//     T. Friede, BMC Medical Research Methodology 15 (2015) 99). Builds are compared without this bound, because a comparison of builds asks for
//     more runs until it decides, and the noise within its runs is not known as well. A fleet has no further nodes. The price is a coverage above
//     95 % if the nodes do not differ.
//
// SpreadP is by the F test of the weighted sum of squares Q: Q/(N − 1) has N − 1 and Σ(Blocks − 1) degrees of freedom without a spread. Cochran's χ²
// takes the noise as known and has too many false alarms with few blocks. Share is I² = (Q − (N − 1))/Q (J. P. T. Higgins & S. G. Thompson, Statistics
// in Medicine 21 (2002) 1539–1558).
func PoolNodes(nodes []NodeEffect) Fleet {
	effects, freedom := shareByKind(nodes)
	f := Fleet{Pooled: Pool(effects), P: math.NaN(), SpreadP: math.NaN(), Share: math.NaN()}
	if f.N < 2 {
		return f
	}
	if !math.IsNaN(f.Tau) {
		f.Noise = meanNoise(effects)
		_, weight, _ := weighted(effects, f.Tau*f.Tau)
		f.SE = max(f.SE, 1/math.Sqrt(weight))
		_, _, q := weighted(effects, 0)
		between := float64(f.N - 1)
		f.SpreadP = distuv.F{D1: between, D2: freedom}.Survival(q / between)
		f.Share = max(0, (q-between)/q)
	}
	f.P = tailsOf(f.Log/f.SE, float64(f.N-1))
	return f
}

// shareByKind returns the effects with the noise of their kinds, and the degrees of freedom of the noise. If the noise of some node is unknown, no effect
// has a noise.
func shareByKind(nodes []NodeEffect) (effects []Effect, freedom float64) {
	places := map[string][]int{}
	for i, n := range nodes {
		places[n.Kind] = append(places[n.Kind], i)
		freedom += float64(n.Blocks - 1)
	}
	effects = make([]Effect, len(nodes))
	for _, list := range places {
		var members []Effect
		var blocks []int
		for _, i := range list {
			members, blocks = append(members, nodes[i].Effect), append(blocks, nodes[i].Blocks)
		}
		for k, e := range ShareNoise(members, blocks) {
			effects[list[k]] = e
		}
	}
	return effects, freedom
}

// meanNoise is the root of the mean of the squared standard errors.
func meanNoise(effects []Effect) float64 {
	sum := 0.0
	for _, e := range effects {
		sum += e.SE * e.SE
	}
	return math.Sqrt(sum / float64(len(effects)))
}

// tailsOf is the two-sided p-value of a statistic with Student's distribution. It is 1 for 0/0, and 0 for an infinite statistic.
func tailsOf(t, freedom float64) float64 {
	if math.IsNaN(t) {
		return 1
	}
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Survival(math.Abs(t)))
}

// Spread is the standard deviation between nodes. If the noise within nodes is unknown, it includes the noise.
func (f Fleet) Spread() float64 {
	if math.IsNaN(f.Tau) {
		return f.SE * math.Sqrt(float64(f.N))
	}
	return f.Tau
}

// Prediction is the interval for the log ratio that one more node of this fleet would show, with the noise within a node: Log ± t √(τ² + noise² + SE²)
// with N − 1 degrees of freedom. For equal noise it is the prediction interval of textbooks. We rejected the usual interval for the node's true ratio, Log ±
// t √(τ² + SE²) (J. P. T. Higgins, S. G. Thompson & D. J. Spiegelhalter, J. R. Statist. Soc. A 172 (2009) 137–159): where the spread is smaller than the noise, τ is often
// estimated as 0, and the interval covers the next node in 81 % (30 nodes, 10 blocks, a spread of half the noise). It is infinite below two nodes.
func (f Fleet) Prediction(alpha float64) Interval {
	if f.N < 2 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	half := student(f.N).Quantile(1-alpha/2) * math.Hypot(math.Hypot(f.Spread(), f.Noise), f.SE)
	return Interval{f.Log - half, f.Log + half}
}

// Minus compares two kinds of nodes. The result is like a fleet: Log is the difference of the mean log ratios, SE its standard error, and P the p-value of no
// difference. The degrees of freedom are by B. L. Welch, Biometrika 34 (1947) 28–35. P is NaN below MinKindNodes.
func (f Fleet) Minus(reference Fleet) KindDifference {
	d := KindDifference{Log: f.Log - reference.Log, P: math.NaN()}
	if min(f.N, reference.N) < MinKindNodes {
		return d
	}
	a, b := f.SE*f.SE, reference.SE*reference.SE
	d.SE, d.freedom = math.Sqrt(a+b), float64(min(f.N, reference.N)-1)
	if a+b > 0 {
		d.freedom = (a + b) * (a + b) / (a*a/float64(f.N-1) + b*b/float64(reference.N-1))
	}
	d.P = tailsOf(d.Log/d.SE, d.freedom)
	return d
}

// KindDifference is the difference of two kinds of nodes.
type KindDifference struct {
	Log, SE, P float64
	freedom    float64
}

// Interval is the two-sided interval of Log with error probability alpha, if P exists.
func (d KindDifference) Interval(alpha float64) Interval {
	half := 0.0
	if d.SE > 0 {
		half = d.SE * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: d.freedom}.Quantile(1-alpha/2)
	}
	return Interval{d.Log - half, d.Log + half}
}

// Verdict is the verdict about a target in a fleet, in the order of [Judge]. adjusted is P after the correction of its family. lost are the shares of the nodes without a
// value because of lost trials.
func (f Fleet) Verdict(better Direction, adjusted, alpha, margin float64, lost Losses) Verdict {
	ci := f.Interval(1 - Level)
	differs := adjusted < alpha
	isSlower := (f.Log > 0) == (better == Lower)
	contains := func(log float64) bool { return math.Abs(log) <= math.Log1p(margin) }
	switch {
	case f.N < MinNodes:
		return TooFew
	case margin > 0 && contains(ci.Lo) && contains(ci.Hi) && max(lost.Baseline, lost.Other) <= MostLost:
		return Negligible
	case differs && lost.OfBetter(!isSlower) > 0:
		return TrialsLost
	case differs && isSlower:
		return Slower
	case differs:
		return Faster
	case math.Exp((ci.Hi-ci.Lo)/2)-1 > noisyHalfWidth:
		return TooNoisy
	}
	return NoDifference
}
