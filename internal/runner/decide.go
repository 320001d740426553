package runner

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Decide is a rule that ends a cell once all its deciding comparisons with the baseline are closed. It is fixed before the run.
//
// The deciding metrics of a benchmark are those that findings are about, which have a phrase; without one they are all metrics with a
// verdict. A comparison is closed if its difference is shown over all comparisons of the run, or if its ratio is precise: a ratio of pairs
// that are all equal always is. Only whole cells end, and
// the others keep their random order, so the blocks stay comparable.
type Decide struct {
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
	judged := slices.DeleteFunc(slices.Clone(metrics), func(m result.Metric) bool { return !m.IsJudged() })
	leading := slices.DeleteFunc(slices.Clone(judged), func(m result.Metric) bool { return m.Phrase == "" })
	if len(leading) > 0 {
		return leading
	}
	return judged
}

// decisions are the state of the rule for one benchmark. A nil value ends nothing.
type decisions struct {
	rule    *Decide
	looks   *stats.Sequential
	metrics []result.Metric
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

func (r *run) newDecisions(w plan.Work) *decisions {
	if r.Decide == nil || w.Blocks > 0 {
		return nil
	}
	if r.looks == nil {
		r.looks = stats.NewSequential(r.Decide.Looks)
	}
	return &decisions{
		rule: r.Decide, looks: r.looks, metrics: deciding(w.Benchmark.Metrics),
		values: map[seriesKey][]stats.Sample{}, measured: map[string]int{}, stopped: map[string]int{},
	}
}

// add adds the values of a trial.
func (d *decisions) add(t *result.Trial) {
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
func (d *decisions) most() int { return d.rule.Looks[len(d.rule.Looks)-1] }

// blocks are the least and the greatest number of blocks of a target. known blocks are measured already, and the target ends at a look.
func (d *decisions) blocks(target string, known int) (least, most int) {
	if blocks, stopped := d.stopped[target]; stopped {
		return blocks, blocks
	}
	next := slices.IndexFunc(d.rule.Looks, func(look int) bool { return look >= known })
	return d.rule.Looks[max(0, next)], d.most()
}

// enough reports whether the benchmark needs no block of this number.
func (d *decisions) enough(block int) bool { return d.over && block >= d.looked || block >= d.most() }

// ended reports whether a target has no block of this number.
func (d *decisions) ended(target string, block int) bool {
	if d == nil {
		return false
	}
	blocks, stopped := d.stopped[target]
	return stopped && block >= blocks
}

// first are the values of a metric on a target in the first blocks. A resumed run may already hold trials of later blocks.
func (d *decisions) first(target, metric string, blocks int) []stats.Sample {
	return slices.DeleteFunc(slices.Clone(d.values[seriesKey{target, metric}]), func(s stats.Sample) bool { return s.Block >= blocks })
}

// decide looks at a benchmark, if this number of blocks is a look before the last, and ends the cells whose comparisons are closed. A resumed run comes
// to the same decisions.
func (r *run) decide(i, blocks int) error {
	d := r.decisions[i]
	if d == nil || d.over || blocks <= d.looked || blocks >= d.most() || !slices.Contains(d.rule.Looks, blocks) {
		return nil
	}
	d.looked = blocks
	baseline := d.baseline(r.Targets)
	open := false
	for _, t := range r.Targets {
		cell := cellOf(r.Work[i], t.Name)
		if _, stopped := d.stopped[t.Name]; stopped || r.over[cell] || t.Name == baseline {
			continue
		}
		reason, closed := d.closed(cell, baseline, blocks, r.Seed)
		if !closed && r.over[cellOf(r.Work[i], baseline)] {
			reason, closed = result.Incomparable, true
		}
		if !closed {
			open = true
			continue
		}
		if err := r.end(d, cell, blocks, reason); err != nil {
			return err
		}
	}
	if open {
		return nil
	}
	d.over = true
	if cell := cellOf(r.Work[i], baseline); baseline != "" && !r.over[cell] {
		return r.end(d, cell, blocks, result.AllStopped)
	}
	return nil
}

func (r *run) end(d *decisions, cell result.Cell, blocks int, reason result.StopReason) error {
	d.stopped[cell.Target] = blocks
	if r.Stopped == nil {
		return nil
	}
	return r.Stopped(result.Stop{Cell: cell, Blocks: blocks, Reason: reason})
}

// baseline is the run's baseline if it has a result, else the first target that has one. It is empty without results.
func (d *decisions) baseline(targets []Target) string {
	if d.measured[d.rule.Baseline] > 0 {
		return d.rule.Baseline
	}
	for _, t := range targets {
		if d.measured[t.Name] > 0 {
			return t.Name
		}
	}
	return ""
}

// closed reports whether all deciding comparisons of a cell are closed, and why.
func (d *decisions) closed(cell result.Cell, baseline string, blocks int, seed uint64) (reason result.StopReason, closed bool) {
	reason = result.Incomparable
	look := d.looks.At(blocks, false)
	for _, m := range d.metrics {
		c := stats.Compare(d.first(baseline, m.Name, blocks), d.first(cell.Target, m.Name, blocks), stats.Direction(m.Better), cell.Seed(seed, m.Name))
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
