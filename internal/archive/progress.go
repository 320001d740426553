package archive

import (
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Progress is the progress of a run, as its record shows it to another process. It knows the plan and the trials, and neither the
// pace of earlier runs nor the cells that the run gives up: see [runner.Progress] for the progress in the process of the run.
type Progress struct {
	Done, Total int
	// Left is the estimated time to the end, by the mean time of the trials of each cell. It is 0 without a trial. AtMost is set if cells may end
	// before, so that Total and Left are the greatest values.
	Left   time.Duration
	AtMost bool
	// Work has the progress of each benchmark with its parameters, in the order of the plan.
	Work []WorkProgress
}

// WorkProgress is the progress of a benchmark with its parameters. Problems counts the trials that are not ok.
type WorkProgress struct {
	Benchmark, Params     string
	Done, Total, Problems int
}

// count is the trials of a cell so far.
type count struct {
	done, problems int
	sum            time.Duration
	isOver         bool
}

func (c *count) add(t *result.Trial) {
	if t.Status == result.Skipped {
		c.isOver = true // no trial of the cell follows
		return
	}
	c.done++
	c.sum += t.Elapsed
	if t.Status != result.OK {
		c.problems++
	}
}

// mean is the mean time of a trial, 0 without one.
func (c *count) mean() time.Duration { return c.sum / time.Duration(max(c.done, 1)) }

// ProgressOf computes the progress of a run from its outline. Its plan is the recorded one, with all parameters.
func ProgressOf(run *result.Run) (p Progress, err error) {
	source, err := plan.Parse("run "+run.ID, []byte(run.Plan))
	if err != nil {
		return p, fmt.Errorf("read the plan of run %s: %w", run.ID, err)
	}
	work, err := source.Resolve(catalogue.Catalogue{})
	if err != nil {
		return p, fmt.Errorf("read the plan of run %s: %w", run.ID, err)
	}
	cells, total := counts(run)
	for _, w := range work {
		blocks := source.BlockLimit()
		if w.Blocks > 0 {
			blocks = w.Blocks
		} else if blocks > source.Blocks {
			p.AtMost = true
		}
		state := WorkProgress{Benchmark: w.Benchmark.Name, Params: w.Key()}
		for _, t := range run.Targets {
			c := cells[result.Cell{Benchmark: state.Benchmark, Params: state.Params, Target: t.Name}]
			pace := total.mean()
			switch {
			case c == nil && t.Unavailable != "":
				continue
			case c == nil:
				c = &count{}
			case c.done > 0:
				pace = c.mean()
			}
			trials := max(source.Warmup+blocks, c.done)
			if c.isOver {
				trials = c.done
			}
			state.Done, state.Total, state.Problems = state.Done+c.done, state.Total+trials, state.Problems+c.problems
			p.Left += time.Duration(trials-c.done) * pace
		}
		p.Done, p.Total, p.Work = p.Done+state.Done, p.Total+state.Total, append(p.Work, state)
	}
	if source.Budget > 0 {
		p.Left, p.AtMost = min(p.Left, max(0, source.Budget-total.sum)), true
	}
	return p, nil
}

// counts counts the trials of each cell and of the run.
func counts(run *result.Run) (cells map[result.Cell]*count, total count) {
	cells = map[result.Cell]*count{}
	find := func(cell result.Cell) *count {
		if cells[cell] == nil {
			cells[cell] = &count{}
		}
		return cells[cell]
	}
	for i := range run.Trials {
		t := &run.Trials[i]
		find(t.Cell).add(t)
		total.add(t)
	}
	if run.Stopping != nil {
		for _, s := range run.Stopping.Stopped {
			find(s.Cell).isOver = true
		}
	}
	return cells, total
}
