package fleet

import (
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// classes are all classes of all metrics with their metrics.
func (r *Report) classes(do func(m *Metric, c *Class)) {
	for i := range r.Metrics {
		m := &r.Metrics[i]
		for n := range m.Classes {
			do(m, &m.Classes[n])
		}
	}
}

// judge fills in the estimates and the verdicts.
func (r *Report) judge() {
	for i := range r.Stages {
		r.Stages[i].finish(r.Targets)
	}
	r.classes(r.estimate)
	for i := range r.Metrics {
		r.judgeFamily(&r.Metrics[i])
	}
	r.judgeTogether()
	r.judgeSpreads()
	r.judgeKinds()
	r.findOdd()
	r.classes(func(_ *Metric, c *Class) { r.separate(c) })
}

// counting are the places of the nodes that count for a class.
func (c *Class) counting() []int {
	var places []int
	for i := range c.Values {
		if c.Values[i].Counts {
			places = append(places, i)
		}
	}
	return places
}

// effects are the effects of some nodes.
func (c *Class) effects(places []int) []stats.NodeEffect {
	effects := make([]stats.NodeEffect, len(places))
	for i, place := range places {
		effects[i] = c.Values[place].effect
	}
	return effects
}

// estimate pools the nodes of a class.
func (r *Report) estimate(m *Metric, c *Class) {
	c.SpreadP = math.NaN()
	places := c.counting()
	if c.Baseline || len(places) == 0 {
		return
	}
	f := stats.PoolNodes(c.effects(places))
	c.Fleet = f
	c.Comparison = &stats.Comparison{
		N: f.N, Better: stats.Direction(m.Better), Ratio: math.Exp(f.Log), Means: math.NaN(), P: math.NaN(), Adjusted: math.NaN(), MinP: math.NaN(),
		LogSE: f.SE, Detectable: math.Inf(1), Verdict: stats.TooFew,
	}
	if f.N >= stats.MinNodes {
		log := f.Interval(1 - stats.Level)
		c.Comparison.CI = &stats.Interval{Lo: math.Exp(log.Lo), Hi: math.Exp(log.Hi)}
		c.Comparison.P = f.P
	}
	if c.Emulated {
		*c.Comparison = c.Comparison.Withhold()
	}
}

// lost are the shares of the nodes that have no value, or lost too many blocks.
func (c *Class) lost() stats.Losses {
	var lost stats.Losses
	nodes := 0
	for i := range c.Values {
		v := &c.Values[i]
		switch {
		case v.lost.Other > stats.MostLost:
			lost.Other++
		case v.lost.Baseline > stats.MostLost:
			lost.Baseline++
		case !v.Counts:
			continue
		}
		nodes++
	}
	lost.Other, lost.Baseline = lost.Other/float64(nodes), lost.Baseline/float64(nodes)
	return lost
}

// judgeFamily gives the verdicts of the targets of a metric.
func (r *Report) judgeFamily(m *Metric) {
	p := make([]float64, len(m.Classes))
	for i := range m.Classes {
		p[i] = math.NaN()
		if c := m.Classes[i].Comparison; c != nil {
			p[i] = c.P
		}
	}
	for i, adjusted := range stats.Holm(p) {
		c := m.Classes[i].Comparison
		if c == nil || c.Verdict == stats.Withheld {
			continue
		}
		c.Adjusted, c.Lost = adjusted, m.Classes[i].lost()
		c.Verdict = m.Classes[i].Fleet.Verdict(c.Better, adjusted, stats.Alpha, r.MinEffect, c.Lost)
		if c.Differs() {
			c.By = stats.Typical
		}
	}
}

// judgeTogether marks the differences that are shown over all metrics of the fleet.
func (r *Report) judgeTogether() {
	var list []*stats.Comparison
	r.classes(func(_ *Metric, c *Class) {
		if c.Comparison != nil {
			list = append(list, c.Comparison)
		}
	})
	for i, adjusted := range stats.Holm(lists.Convert(list, func(c **stats.Comparison) float64 { return (*c).P })) {
		list[i].Everywhere = list[i].Differs() && adjusted < stats.Alpha
	}
}

// judgeSpreads corrects the p-values of all spreads together.
func (r *Report) judgeSpreads() {
	var list []*Class
	var p []float64
	r.classes(func(_ *Metric, c *Class) {
		if c.Fleet.N >= stats.MinNodes && !c.Emulated {
			list, p = append(list, c), append(p, c.Fleet.SpreadP)
		}
	})
	for i, adjusted := range stats.Holm(p) {
		list[i].SpreadP = adjusted
	}
}

// judgeKinds compares each kind of nodes with the largest one.
func (r *Report) judgeKinds() {
	var list []*KindDifference
	r.classes(func(_ *Metric, c *Class) {
		if c.Comparison == nil || c.Emulated {
			return
		}
		places := make([][]int, len(r.Kinds))
		reference := 0
		for i, k := range r.Kinds {
			places[i] = lists.Filter(k.Nodes, func(node int) bool { return c.Values[node].Counts })
			if len(places[i]) > len(places[reference]) {
				reference = i
			}
		}
		base := stats.PoolNodes(c.effects(places[reference]))
		for i, k := range r.Kinds {
			if i == reference {
				continue
			}
			f := stats.PoolNodes(c.effects(places[i]))
			d := f.Minus(base)
			if math.IsNaN(d.P) {
				continue
			}
			ci := d.Interval(1 - stats.Level)
			c.Kinds = append(c.Kinds, KindDifference{
				Kind: k.Name, Reference: r.Kinds[reference].Name, Nodes: f.N, Ratio: math.Exp(f.Log), Quotient: math.Exp(d.Log),
				CI: stats.Interval{Lo: math.Exp(ci.Lo), Hi: math.Exp(ci.Hi)}, P: d.P,
			})
		}
		for i := range c.Kinds {
			list = append(list, &c.Kinds[i])
		}
	})
	for i, adjusted := range stats.Holm(lists.Convert(list, func(k **KindDifference) float64 { return (*k).P })) {
		list[i].P = adjusted
	}
}

// findOdd finds the nodes that differ from their kind, on each target and on the baseline.
func (r *Report) findOdd() {
	type group struct {
		class  *Class
		places []int
	}
	var groups []group
	var effects [][]stats.NodeEffect
	r.classes(func(_ *Metric, c *Class) {
		if c.Emulated {
			return
		}
		for _, k := range r.Kinds {
			places := lists.Filter(k.Nodes, func(node int) bool { return c.Values[node].Counts })
			groups, effects = append(groups, group{c, places}), append(effects, c.effects(places))
		}
	})
	for _, o := range stats.OddNodes(effects, stats.Alpha) {
		g := groups[o.Group]
		g.class.Odd = append(g.class.Odd, Odd{Node: g.places[o.Node], Quotient: math.Exp(o.Log), P: o.P})
	}
	r.classes(func(_ *Metric, c *Class) {
		slices.SortFunc(c.Odd, func(a, b Odd) int { return a.Node - b.Node })
		for i := range c.Odd {
			c.Odd[i].Facts = r.peculiar(c.Target, c.Odd[i].Node)
		}
		if c.Odd != nil && !c.Baseline {
			isOdd := func(node int) bool { return slices.ContainsFunc(c.Odd, func(o Odd) bool { return o.Node == node }) }
			c.Rest = stats.PoolNodes(c.effects(lists.Filter(c.counting(), func(node int) bool { return !isOdd(node) })))
		}
	})
}
