// Package decision has the rules that end the blocks of a benchmark: enough precision, or closed comparisons.
//
// The rules see only the values of trials. So a resumed run, which feeds them the trials of its first part, comes to the same decisions.
package decision

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Rule is a rule that ends a cell once all its deciding comparisons with the baseline are closed. It is fixed before the run.
//
// The deciding metrics of a benchmark are those that findings are about, which have a phrase; without one they are all metrics with a
// verdict. A comparison is closed if its difference is shown over all comparisons of the run, or if its ratio is precise: a ratio of pairs
// that are all equal always is. Only whole cells end, and
// the others keep their random order, so the blocks stay comparable.
type Rule struct {
	// Looks are the numbers of blocks for the tests of the rule.
	Looks []int
	// Comparisons is the number of comparisons of the whole run, which share the error stats.Alpha.
	Comparisons int
	// Precision is the half-width of the interval of a ratio, as a share, that also closes a comparison; 0 for none.
	Precision float64
	// Baseline is the run's baseline. If it has no result in a benchmark, the first target with a result stands for it, as in reports.
	Baseline string
}

// Comparisons counts the comparisons that a report may judge, for a number of targets with the baseline.
func Comparisons(work []plan.Work, targets int) int {
	n := 0
	for _, w := range work {
		for _, m := range w.Benchmark.Metrics {
			if m.IsJudged() {
				n += targets - 1
			}
		}
	}
	return n
}

// deciding are the metrics that decide about the cells of a benchmark.
func deciding(metrics []result.Metric) []result.Metric {
	verdicts := slices.DeleteFunc(slices.Clone(metrics), func(m result.Metric) bool { return !m.IsJudged() })
	leading := slices.DeleteFunc(slices.Clone(verdicts), func(m result.Metric) bool { return m.Phrase == "" })
	if len(leading) > 0 {
		return leading
	}
	return verdicts
}

// State are the state of the rule for one benchmark. A nil value ends nothing.
type State struct {
	rule    *Rule
	looks   *stats.Sequential
	metrics []result.Metric
	seed    uint64
	values  map[seriesKey][]stats.Sample
	// measured has the number of results by target.
	measured map[string]int
	// looked is the last look. A repeated look decides nothing.
	looked int
	// stopped has the number of blocks by target.
	stopped map[string]int
	// over is set if the baseline has stopped.
	over bool
}

// New returns the state of a rule for a benchmark with these metrics. The tests of all benchmarks share the looks.
func New(rule *Rule, looks *stats.Sequential, metrics []result.Metric, seed uint64) *State {
	return &State{
		rule: rule, looks: looks, metrics: deciding(metrics), seed: seed,
		values: map[seriesKey][]stats.Sample{}, measured: map[string]int{}, stopped: map[string]int{},
	}
}

// Add adds the values of a trial.
func (d *State) Add(t *result.Trial) {
	if d == nil || t.Status != result.OK {
		return
	}
	d.measured[t.Target]++
	for _, m := range d.metrics {
		if values := t.Values(m.Name); len(values) > 0 {
			key := seriesKey{t.Target, m.Name}
			d.values[key] = append(d.values[key], stats.Sample{Block: t.Block, Value: valueOf(m, values)})
		}
	}
}

// most is the greatest number of blocks.
func (d *State) most() int { return d.rule.Looks[len(d.rule.Looks)-1] }

// Blocks are the least and the greatest number of blocks of a target. count blocks are measured already, and the target ends at a look.
func (d *State) Blocks(target string, count int) (minimum, maximum int) {
	if blocks, ok := d.stopped[target]; ok {
		return blocks, blocks
	}
	next := slices.IndexFunc(d.rule.Looks, func(look int) bool { return look >= count })
	return d.rule.Looks[max(0, next)], d.most()
}

// Enough reports whether the benchmark needs no block of this number.
func (d *State) Enough(block int) bool { return d.over && block >= d.looked || block >= d.most() }

// Ended reports whether a target has no block of this number.
func (d *State) Ended(target string, block int) bool {
	if d == nil {
		return false
	}
	blocks, ok := d.stopped[target]
	return ok && block >= blocks
}

// first are the values of a metric on a target in the first blocks. A resumed run may already hold trials of later blocks.
func (d *State) first(target, metric string, blocks int) []stats.Sample {
	return slices.DeleteFunc(slices.Clone(d.values[seriesKey{target, metric}]), func(s stats.Sample) bool { return s.Block >= blocks })
}

// Look looks at the benchmark, if this number of blocks is a look before the last, and ends the cells whose comparisons are closed. The cells are in the
// order of the targets, and gaveUp reports those that have ended without the rule. stop records the end of a cell. A resumed run comes to the same
// decisions.
func (d *State) Look(blocks int, cells []result.Cell, gaveUp func(result.Cell) bool, stop func(result.Stop) error) error {
	if d == nil || d.over || blocks <= d.looked || blocks >= d.most() || !slices.Contains(d.rule.Looks, blocks) {
		return nil
	}
	d.looked = blocks
	end := func(cell result.Cell, reason result.StopReason) error {
		d.stopped[cell.Target] = blocks
		return stop(result.Stop{Cell: cell, Blocks: blocks, Reason: reason})
	}
	baseline, hasBaseline := d.baseline(cells)
	open := false
	for _, cell := range cells {
		if _, hasEnd := d.stopped[cell.Target]; hasEnd || gaveUp(cell) || cell == baseline {
			continue
		}
		reason, isClosed := d.closed(cell, baseline.Target, blocks)
		if !isClosed && hasBaseline && gaveUp(baseline) {
			reason, isClosed = result.Incomparable, true
		}
		if !isClosed {
			open = true
			continue
		}
		if err := end(cell, reason); err != nil {
			return err
		}
	}
	if open {
		return nil
	}
	d.over = true
	if hasBaseline && !gaveUp(baseline) {
		return end(baseline, result.AllStopped)
	}
	return nil
}

// baseline is the cell of the run's baseline if it has a result, else the first cell that has one. It is false without results.
func (d *State) baseline(cells []result.Cell) (result.Cell, bool) {
	hasResult := func(c result.Cell) bool { return d.measured[c.Target] > 0 }
	if i := slices.IndexFunc(cells, func(c result.Cell) bool { return c.Target == d.rule.Baseline && hasResult(c) }); i >= 0 {
		return cells[i], true
	}
	if i := slices.IndexFunc(cells, hasResult); i >= 0 {
		return cells[i], true
	}
	return result.Cell{}, false
}

// closed reports whether all deciding comparisons of a cell are closed, and why.
func (d *State) closed(cell result.Cell, baseline string, blocks int) (reason result.StopReason, ok bool) {
	reason = result.Incomparable
	look := d.looks.At(blocks, false)
	for _, m := range d.metrics {
		c := stats.Compare(d.first(baseline, m.Name, blocks), d.first(cell.Target, m.Name, blocks), stats.Direction(m.Better), cell.Seed(d.seed, m.Name))
		switch {
		case c.Verdict == stats.NotComparable || c.N == 0:
			continue
		case look.P(c.P)*float64(d.rule.Comparisons) < stats.Alpha:
			if reason == result.Incomparable {
				reason = result.Decided
			}
		case c.Precise(d.rule.Precision): // also equal values
			reason = result.Precise
		default:
			return "", false
		}
	}
	return reason, true
}
