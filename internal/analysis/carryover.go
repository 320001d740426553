package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// smallCarryOver is the relative effect of a target on the next that has no warning.
const smallCarryOver = 0.02

// CarryOver is the dependence of a metric on the target before.
type CarryOver struct {
	Key
	Metric, Target string
	// Before is the target before. It is empty if the effect is on the first trial of a block.
	Before string
	// Ratio is the quotient of these values and the other values of the target, and Blocks counts these values.
	Ratio  float64
	Blocks int
}

// carryOvers lists the metrics whose values depend on the target before. All metrics of the run are one family.
func (a *Analysis) carryOvers(run int, trials []result.Trial) []CarryOver {
	predecessor := predecessors(trials)
	type candidate struct {
		stats.CarryOver
		key    Key
		metric *Metric
		seed   uint64
	}
	var candidates []candidate
	for _, b := range a.Benchmarks() {
		for _, m := range b.Metrics {
			if !m.IsJudged() || b.Sections[run] == nil {
				continue
			}
			candidates = append(candidates, candidate{key: b.Key, metric: &m, seed: cellSeed(a.Runs[run].Seed, b.Key, "", m.Name)})
		}
	}
	concurrently(len(candidates), func(i int) {
		c := &candidates[i]
		c.CarryOver = stats.FindCarryOver(turnsOf(c.metric, run, predecessor), c.seed)
	})
	var p []float64
	for _, c := range candidates {
		p = append(p, c.P)
	}
	var effects []CarryOver
	for i, adjusted := range stats.Holm(p) {
		c := candidates[i]
		if adjusted >= stats.Alpha || c.Count == 0 || max(c.Ratio, 1/c.Ratio) < 1+smallCarryOver {
			continue
		}
		effect := CarryOver{Key: c.key, Metric: c.metric.Name, Target: c.metric.Rows[c.Target].Target, Ratio: c.Ratio, Blocks: c.Count}
		if c.Before >= 0 {
			effect.Before = c.metric.Rows[c.Before].Target
		}
		effects = append(effects, effect)
	}
	return effects
}

// turnsOf are the values of a metric in a run, with the targets before them. Targets are numbered by their rows.
func turnsOf(m *Metric, run int, predecessor map[int]string) []stats.Turn {
	number := map[string]int{"": -1}
	count := 0
	for n, row := range m.Rows {
		number[row.Target] = n
		count += len(row.Cells[run].Points)
	}
	turns := make([]stats.Turn, 0, count)
	for n, row := range m.Rows {
		for _, point := range row.Cells[run].Points {
			previous, has := number[predecessor[point.Seq]]
			if !has {
				previous = -1
			}
			turns = append(turns, stats.Turn{Block: point.Block, Target: n, Before: previous, Value: point.Value})
		}
	}
	return turns
}

// predecessors are the targets before each trial, by its number: the target of the trial before, of the same benchmark and block. Others have
// none.
func predecessors(trials []result.Trial) map[int]string {
	targets := map[int]string{}
	for i := 1; i < len(trials); i++ {
		last, t := &trials[i-1], &trials[i]
		if last.Benchmark == t.Benchmark && last.Params == t.Params && last.Block == t.Block && last.Warmup == t.Warmup {
			targets[t.Seq] = last.Target
		}
	}
	return targets
}
