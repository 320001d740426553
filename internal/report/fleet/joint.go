package fleet

import (
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Joint is the fleet as one run: a node takes the place of a block. It is for analyses that count blocks as observations, such as an advice, because the
// node is the unit of observation here. A trial has the value of a node: the median on the baseline, and on the other targets the baseline's median times the
// ratio of the node. A node that lost too many blocks has a failed trial, and a node without a value has none.
func (r *Report) Joint() result.Run {
	run := result.Run{
		ID: r.ID, Name: r.Plan, State: result.Complete, Started: r.Started, Ended: r.Ended, Tool: r.Tool, Baseline: r.Baseline, Seed: 1, Host: r.host, Targets: r.targets,
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if !m.IsJudged() {
			continue
		}
		b := lists.Place(&run.Bench, func(b *result.Benchmark) bool { return b.Name == m.Key.Name }, result.Benchmark{Name: m.Key.Name})
		if !slices.ContainsFunc(b.Metrics, func(metric result.Metric) bool { return metric.Name == m.Metric.Name }) {
			b.Metrics = append(b.Metrics, m.Metric)
		}
	}
	for node := range r.Nodes {
		trials := map[result.Cell]*result.Trial{}
		var cells []result.Cell
		r.classes(func(m *Metric, c *Class) {
			cell := result.Cell{Benchmark: m.Key.Name, Params: m.Params, Target: c.Target}
			if trials[cell] == nil {
				trials[cell] = &result.Trial{Cell: cell, Block: node, Status: result.Skipped}
				cells = append(cells, cell)
			}
			r.addValue(trials[cell], m, c, node)
		})
		for _, cell := range cells {
			if t := trials[cell]; t.Status != result.Skipped {
				t.Seq, t.Started = len(run.Trials)+1, r.Started
				run.Trials = append(run.Trials, *t)
			}
		}
	}
	return run
}

// addValue adds the value of a node to the trial of its cell. A lost metric makes the whole trial a failed one.
func (r *Report) addValue(t *result.Trial, m *Metric, c *Class, node int) {
	v := &c.Values[node]
	switch {
	case !m.IsJudged() || t.Status == result.Failed:
	case v.lost.Other > stats.MostLost:
		t.Status, t.Reason, t.Samples = result.Failed, v.Reason, nil
	case v.Counts:
		value := v.Median
		if base := m.class(r.Baseline); base != nil && !math.IsNaN(v.Ratio) {
			value = base.Values[node].Median * v.Ratio
		}
		t.Status = result.OK
		t.Samples = append(t.Samples, result.Sample{Metric: m.Metric.Name, Value: value})
	}
}

// class is the class of a target, nil without one.
func (m *Metric) class(target string) *Class {
	if i := slices.IndexFunc(m.Classes, func(c Class) bool { return c.Target == target }); i >= 0 {
		return &m.Classes[i]
	}
	return nil
}

// NextNode is the upper end of the interval for the value of one more node: a share of all nodes like these has no larger value. It is 0 below [stats.MinNodes].
// nodes is the number of nodes with an estimate of the value.
func (r *Report) NextNode(benchmark, metric, target string, share float64) (bound float64, nodes int) {
	for i := range r.Metrics {
		m := &r.Metrics[i]
		c := m.class(target)
		if m.Key.Name != benchmark || m.Metric.Name != metric || c == nil {
			continue
		}
		var levels []stats.NodeEffect
		for n := range c.Values {
			if level := c.Values[n].level; level.Blocks >= stats.MinSamples && !math.IsNaN(level.SE) {
				levels = append(levels, level)
			}
		}
		if nodes = len(levels); nodes >= stats.MinNodes {
			bound = math.Exp(stats.PoolNodes(levels).Prediction(2 * (1 - share)).Hi)
		}
	}
	return bound, nodes
}
