package runner

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// pace is the mean time of trials.
type pace struct {
	cells map[result.Cell]mean
	all   mean
}

type mean struct {
	n   int
	sum time.Duration
}

func (m mean) add(d time.Duration) mean { return mean{m.n + 1, m.sum + d} }

func (m mean) of(other mean) time.Duration {
	if m.n == 0 {
		m = other
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
// cell. The next trial belongs to the given block of one work.
func (r *run) progress(work, block int) Progress {
	var p Progress
	for i, w := range r.Work {
		blocks := r.stop(i).Min
		if i == work {
			blocks = max(blocks, block+1)
		}
		for _, t := range r.Targets {
			cell := cellOf(w, t.Name)
			if r.over[cell] {
				continue
			}
			pace := r.pace.cells[cell]
			total := max(r.Warmup+blocks, pace.n)
			p.Total += total
			p.Done += pace.n
			p.Left += time.Duration(total-pace.n) * pace.of(r.pace.all)
		}
	}
	if r.Budget > 0 {
		p.Left = min(p.Left, max(0, r.Budget-r.elapsed()))
	}
	return p
}

// stop is the stop rule of a benchmark. A number of blocks of its own replaces the rule of the run.
func (r *run) stop(i int) stats.StopRule {
	if n := r.Work[i].Blocks; n > 0 {
		return stats.StopRule{Min: n, Max: n, Seed: r.Stop.Seed}
	}
	return r.Stop
}

// enough reports whether a benchmark needs no block of this number.
func (r *run) enough(i, block int) bool {
	r.ready[i] = r.ready[i] || r.measured[i].enough(r.stop(i), block)
	return r.ready[i]
}

// spent reports whether a part of the budget has ended.
func (r *run) spent(part time.Duration) bool { return r.Budget > 0 && r.elapsed() >= part }

// elapsed is the time that the run has taken, the trials of earlier processes included.
func (r *run) elapsed() time.Duration { return r.earlier + r.Clock.Now().Sub(r.began) }
