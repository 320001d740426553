package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Ranking orders targets by the speed of programs, over all metrics that all of them have.
type Ranking struct {
	Targets    []Ranked // the fastest first
	Dimensions []result.Dimension
	Metrics    int // that all targets have
	// TooFew is set if the blocks are too few for a difference. Apart is set if bare metal and some target have speeds, but no metric
	// and block is common to all targets.
	TooFew, Apart bool
	// Lost names the targets that lost so many trials that no verdict helps them.
	Lost []string
	// Emulated is set if the CPU is emulated, so that speeds are not compared.
	Emulated bool
}

// Ranked is a target of a ranking.
type Ranked struct {
	Name   string
	Native stats.Comparison // of the cost with 1, the cost of bare metal
	Equal  bool             // no difference from the first target is shown
	cost   []stats.Sample   // the geometric mean over dimensions
	lost   float64          // the largest share of lost blocks of a benchmark
}

// Ranking computes a target's cost in each block: the geometric mean over dimensions of the geometric means of the slowdowns
// within the block, as SPEC combines its programs (P. J. Fleming, J. J. Wallace, "How Not to Lie with Statistics", CACM 29
// (1986) 218–221).
func (a *Analysis) Ranking(run int) Ranking {
	scores, _, _ := a.scores(run)
	scores = lists.Filter(scores, func(s scored) bool { return s.Bare && s.IsFactor() })
	if a.Runs[run].Unjudged {
		return Ranking{Emulated: len(scores) > 0}
	}
	targets := a.Runs[run].Scorecard.Targets
	type source struct {
		Key
		metric string
	}
	sourceOf := func(s scored) source { return source{s.Benchmark, s.Metric.Name} }
	counts := map[source]int{}
	for _, s := range scores {
		counts[sourceOf(s)]++
	}
	out := Ranking{}
	for _, d := range result.Dimensions() {
		if slices.ContainsFunc(scores, func(s scored) bool { return s.Metric.Dimension == d && counts[sourceOf(s)] == len(targets) }) {
			out.Dimensions = append(out.Dimensions, d)
		}
	}
	if len(out.Dimensions) == 0 {
		return Ranking{Apart: len(scores) > 0}
	}
	for _, n := range counts {
		if n == len(targets) {
			out.Metrics++
		}
	}
	for _, target := range targets {
		mine := lists.Filter(scores, func(s scored) bool { return s.target == target && counts[sourceOf(s)] == len(targets) })
		cost := blockCosts(mine, out.Dimensions)
		if len(cost) == 0 {
			return Ranking{Apart: true}
		}
		bare := make([]stats.Sample, len(cost))
		for i, c := range cost {
			bare[i] = stats.Sample{Block: c.Block, Value: 1}
		}
		comparison := stats.Compare(bare, cost, stats.Lower, cellSeed(a.Runs[run].Seed, Key{}, target, ""))
		one := Ranked{Name: target, Native: comparison.AtLook(a.Runs[run].look(comparison.N)), cost: cost}
		for _, s := range mine {
			one.lost = max(one.lost, s.lost.Other)
		}
		if one.lost > stats.MostLost {
			out.Lost = append(out.Lost, target)
		}
		out.Targets = append(out.Targets, one)
	}
	slices.SortStableFunc(out.Targets, func(a, b Ranked) int { return cmp.Compare(a.Native.Ratio, b.Native.Ratio) })
	var family []stats.Comparison
	for _, t := range out.Targets[1:] {
		comparison := stats.Compare(out.Targets[0].cost, t.cost, stats.Lower, a.Runs[run].Seed)
		comparison = comparison.AtLook(a.Runs[run].look(comparison.N))
		comparison.Lost = stats.Losses{Baseline: out.Targets[0].lost, Other: t.lost}
		family = append(family, comparison)
	}
	out.Targets[0].Equal = true
	for i, c := range stats.Judge(family, stats.Alpha, 0) {
		out.Targets[i+1].Equal = c.Verdict != stats.Slower && c.Verdict != stats.Mixed
		out.TooFew = out.TooFew || !judged(c)
	}
	return out
}

// blockCosts gives the cost of a target in each block with all metrics.
func blockCosts(scores []scored, dimensions []result.Dimension) []stats.Sample {
	costs := map[int]float64{} // logarithm by block
	metrics := map[int]int{}
	for _, d := range dimensions {
		in := lists.Filter(scores, func(s scored) bool { return s.Metric.Dimension == d })
		for _, s := range in {
			bare := map[int]float64{}
			for _, p := range s.native {
				bare[p.Block] = p.Value
			}
			for _, p := range s.points {
				if log := math.Log(slowdown(p.Value/bare[p.Block], s.Metric)); finite(log) {
					costs[p.Block] += log / float64(len(in)*len(dimensions))
					metrics[p.Block]++
				}
			}
		}
	}
	var samples []stats.Sample
	for block, log := range costs {
		if metrics[block] == len(scores) {
			samples = append(samples, stats.Sample{Block: block, Value: math.Exp(log)})
		}
	}
	slices.SortFunc(samples, func(a, b stats.Sample) int { return cmp.Compare(a.Block, b.Block) })
	return samples
}
