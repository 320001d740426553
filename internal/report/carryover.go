package report

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// smallCarryOver is the relative effect of a target on the next that has no warning.
const smallCarryOver = 0.02

// carryOver lists the metrics whose values depend on the target before. All metrics of the run are one family.
func (r *Report) carryOver(run int, trials []result.Trial) WarningGroup {
	g := WarningGroup{
		Title: "Values that depend on the target before",
		Advice: "a target leaves something to the next: a warm cache, work of a daemon, a hot CPU; the order is random in each block, so the ratios are not biased towards one target, " +
			"but they hold for this set of targets; measure the two targets without each other to see how much it matters",
	}
	before := predecessors(trials)
	type finding struct {
		stats.CarryOver
		title  string
		metric *Metric
		seed   uint64
	}
	var all []finding
	for _, b := range r.Benchmarks() {
		for _, m := range b.Metrics {
			if m.DerivedFrom != "" || b.Sections[run] == nil {
				continue
			}
			all = append(all, finding{title: b.Title() + ", " + m.Name, metric: &m, seed: cellSeed(r.Runs[run].Seed, b.Key, "", m.Name)})
		}
	}
	concurrently(len(all), func(i int) {
		f := &all[i]
		f.CarryOver = stats.FindCarryOver(turnsOf(f.metric, run, before), f.seed)
	})
	var p []float64
	for _, f := range all {
		p = append(p, f.P)
	}
	for i, adjusted := range stats.Holm(p) {
		f := all[i]
		if adjusted >= stats.Alpha || f.Count == 0 || max(f.Ratio, 1/f.Ratio) < 1+smallCarryOver {
			continue
		}
		previous := "as the first of its block"
		if f.Before >= 0 {
			previous = "after " + f.metric.Rows[f.Before].Target
		}
		g.Items = append(g.Items, fmt.Sprintf("%s: %s has %s times its other values %s, in %d blocks", f.title, f.metric.Rows[f.Target].Target, quantity.FactorNumber(f.Ratio), previous, f.Count))
	}
	return g
}

// turnsOf are the values of a metric in a run, with the targets before them. Targets are numbered by their rows.
func turnsOf(m *Metric, run int, before map[int]string) []stats.Turn {
	number := map[string]int{"": -1}
	count := 0
	for n, row := range m.Rows {
		number[row.Target] = n
		count += len(row.Cells[run].Points)
	}
	turns := make([]stats.Turn, 0, count)
	for n, row := range m.Rows {
		for _, point := range row.Cells[run].Points {
			previous, has := number[before[point.Seq]]
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
	before := map[int]string{}
	for i := 1; i < len(trials); i++ {
		last, t := &trials[i-1], &trials[i]
		if last.Benchmark == t.Benchmark && last.Params == t.Params && last.Block == t.Block && last.Warmup == t.Warmup {
			before[t.Seq] = last.Target
		}
	}
	return before
}
