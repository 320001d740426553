package runner

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/decision"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// pace is the mean time of trials.
type pace struct {
	cells map[result.Cell]mean
	all   mean
	// earlier are the times in earlier runs.
	earlier map[result.Cell]time.Duration
}

// known reports whether the time of a cell is measured, in this run or in an earlier one.
func (p *pace) known(cell result.Cell) bool { return p.cells[cell].n > 0 || p.earlier[cell] > 0 }

// of is the expected time of a trial: the mean of the cell in this run, else in earlier runs, else the mean of all cells.
func (p *pace) of(cell result.Cell) time.Duration {
	if m := p.cells[cell]; m.n == 0 && p.earlier[cell] > 0 {
		return p.earlier[cell]
	}
	return p.cells[cell].of(p.all)
}

type mean struct {
	n   int
	sum time.Duration
}

func (m mean) add(d time.Duration) mean { return mean{m.n + 1, m.sum + d} }

func (m mean) of(fallback mean) time.Duration {
	if m.n == 0 {
		m = fallback
	}
	if m.n == 0 {
		return 0
	}
	return m.sum / time.Duration(m.n)
}

func (p *pace) note(t result.Trial) {
	if p.cells == nil {
		p.cells = map[result.Cell]mean{}
	}
	p.cells[t.Cell] = p.cells[t.Cell].add(t.Elapsed)
	p.all = p.all.add(t.Elapsed)
}

// progress counts the trials of all cells that still have trials, and estimates the remaining time from the pace of each
// cell. The next trial belongs to the given block of one work. Cells that a rule may end before count with the greatest number of blocks.
func (r *run) progress(work, block int) Progress {
	var p Progress
	for i, w := range r.Work {
		count := 0 // the number of blocks that are known to be measured
		if i == work {
			count = block + 1
		}
		for _, t := range r.Targets {
			cell := cellOf(w, t.Name)
			if r.over[cell] {
				continue
			}
			lower, upper := r.blocks(i, t.Name, count)
			done := r.pace.cells[cell].n
			total := max(r.Warmup+upper, done)
			p.Total += total
			p.Done += done
			p.AtMost = p.AtMost || lower < upper
			p.Left += time.Duration(total-done) * r.pace.of(cell)
			p.Least += time.Duration(max(r.Warmup+lower, done)-done) * r.pace.of(cell)
		}
	}
	if r.Budget > 0 {
		rest := max(0, r.Budget-r.elapsed())
		p.Left, p.Least = min(p.Left, rest), min(p.Least, rest)
	}
	return p
}

// affordable is the number of blocks that the budget is enough for, at most the goal.
func (r *run) affordable() int {
	rest, goal := r.Budget-r.elapsed(), r.goal()
	for n := range goal {
		var need time.Duration // until each cell has n + 1 blocks, or all of its own
		for i, w := range r.Work {
			for _, t := range r.Targets {
				if cell := cellOf(w, t.Name); !r.over[cell] {
					trials := r.Warmup + min(n+1, r.stop(i).Min) - r.pace.cells[cell].n
					need += time.Duration(max(0, trials)) * r.pace.of(cell)
				}
			}
		}
		if need > rest {
			return n
		}
	}
	return goal
}

// goal is the number of blocks that the plan asks for, the greatest one of all benchmarks.
func (r *run) goal() int {
	goal := 0
	for i := range r.Work {
		goal = max(goal, r.stop(i).Min)
	}
	return goal
}

// blocks are the least and the greatest number of blocks of a cell. count blocks are measured already.
func (r *run) blocks(i int, target string, count int) (minimum, maximum int) {
	if d := r.decisions[i]; d != nil {
		return d.Blocks(target, count)
	}
	rule := r.stop(i)
	minimum = max(rule.Min, count)
	if rule.Precision > 0 && !r.ready[i] {
		return minimum, max(minimum, rule.Max)
	}
	return minimum, minimum
}

// stop is the stop rule of a benchmark. A number of blocks of its own replaces the rule of the run.
func (r *run) stop(i int) stats.StopRule {
	if n := r.Work[i].Blocks; n > 0 {
		return stats.StopRule{Min: n, Max: n}
	}
	return r.Stop
}

// estimate reports the time that the run takes, once each cell has a known time: before the first trial if earlier runs have all cells, else
// after the first block.
func (r *run) estimate(block int) {
	if r.Estimated == nil || r.estimated {
		return
	}
	for _, w := range r.Work {
		for _, t := range r.Targets {
			if cell := cellOf(w, t.Name); !r.over[cell] && !r.pace.known(cell) {
				return
			}
		}
	}
	r.estimated = true
	p := r.progress(0, block)
	if r.Budget > 0 && !p.AtMost {
		if blocks, goal := r.affordable(), r.goal(); blocks < goal {
			p.Blocks, p.Goal = blocks, goal
		}
	}
	if p.Left > 0 {
		r.Estimated(p)
	}
}

// enough reports whether a benchmark needs no block of this number.
func (r *run) enough(i, block int) bool {
	if d := r.decisions[i]; d != nil {
		return d.Enough(block)
	}
	r.ready[i] = r.ready[i] || r.measured[i].Enough(r.stop(i), block)
	return r.ready[i]
}

// spent reports whether a part of the budget has ended.
func (r *run) spent(part time.Duration) bool { return r.Budget > 0 && r.elapsed() >= part }

// elapsed is the time that the run has taken, the trials of earlier processes included.
func (r *run) elapsed() time.Duration { return r.earlier + r.Clock.Now().Sub(r.began) }

// decisionsOf returns the state of the rule that ends cells; nil without a rule, and for a benchmark with a number of blocks of its own.
func (r *run) decisionsOf(w plan.Work) *decision.State {
	if r.Decide == nil || w.Blocks > 0 {
		return nil
	}
	if r.looks == nil {
		r.looks = stats.NewSequential(r.Decide.Looks)
	}
	return decision.New(r.Decide, r.looks, w.Benchmark.Metrics, r.Seed)
}

// decide applies the rule to a benchmark after a number of blocks.
func (r *run) decide(i, blocks int) error {
	var cells []result.Cell
	for _, t := range r.Targets {
		cells = append(cells, cellOf(r.Work[i], t.Name))
	}
	return r.decisions[i].Look(blocks, cells, func(cell result.Cell) bool { return r.over[cell] }, func(s result.Stop) error {
		if r.Stopped == nil {
			return nil
		}
		return r.Stopped(s)
	})
}
