package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The runs of ab. Further runs show more of the variation between runs, but each run costs its set-up. So a run takes about abRunTime,
// within the limits of their number.
const (
	abRunTime    = 30 * time.Second
	abUsualRuns  = 8  // the least number, if the budget allows it
	abManyRuns   = 20 // the largest number that follows from a budget
	abWarmup     = 1  // blocks
	abPilotSize  = 3  // blocks of the calibration
	abPilotTitle = "ab calibration"
)

// abComparison is a comparison under way.
type abComparison struct {
	app  *App
	opts *abOptions
	// summary is the file of GitHub's summary. It may be empty.
	summary string
	plan    plan.Plan
	design  ab.Design

	series *ab.Series
	pilot  result.Run
	last   result.Run
	source *analysis.Source // of the last run
	spent  time.Duration    // of the budget
	// failed are the reasons why the calibration has no ratio; the comparison ends then.
	failed []string
	// ended is set if the budget ended before the last run.
	ended, interrupted bool
	// broken is the error that ended the runs.
	broken error
}

// run executes the calibration and the runs.
func (c *abComparison) run(ctx context.Context) error {
	pace, err := c.calibrate(ctx)
	if err != nil || c.interrupted || c.failed != nil {
		return err
	}
	left := c.opts.budget - c.spent
	runs, blocks, err := pace.schedule(left, c.opts.repeats, c.opts.blocks)
	if err != nil {
		return usage(fmt.Errorf("--budget %v: %w; give at least --budget %v", c.opts.budget, err, quantity.TimeWithReserve(c.spent+pace.of(ab.LeastRuns, 1))))
	}
	c.design.Runs, c.design.Blocks, c.design.MostBlocks = runs, blocks, plan.MaxBlocks
	c.series = ab.New(c.design)
	c.app.line(fmt.Sprintf("up to %d runs of %d blocks, each about %v", runs, blocks, quantity.RoundedTime(pace.of(1, blocks))))
	for n := 1; !c.series.Over(); n++ {
		if left := c.opts.budget - c.spent; left < pace.of(1, 1) {
			c.ended = true
			return nil
		}
		outcome, err := c.execute(ctx, n, blocks)
		if err != nil {
			return err
		}
		if c.interrupted = outcome.Interrupted; c.interrupted {
			return nil
		}
		if c.spent >= c.opts.budget && !c.measured() {
			c.ended = true // before the first block of this run
			return nil
		}
		if err := c.series.Add(c.source, c.opts.took); err != nil {
			return err
		}
		for _, v := range c.series.Document(abPage).Values {
			c.app.line(fmt.Sprintf("run %d of %d: %s %s: %s", n, runs, v.Title(), v.Metric, v.State(n)))
		}
	}
	return nil
}

// calibrate executes a short run that does not count. It shows whether both builds work, and how long a block takes.
func (c *abComparison) calibrate(ctx context.Context) (pace, error) {
	outcome, err := c.execute(ctx, 0, abPilotSize)
	c.pilot = c.last
	if err != nil {
		return pace{}, err
	}
	if c.interrupted = outcome.Interrupted; c.interrupted {
		return pace{}, nil
	}
	if err := available(c.pilot); err != nil {
		return pace{}, err
	}
	for _, v := range c.design.Values {
		ratio := ab.Find(c.source, v, c.design.A, c.design.B)
		if ratio.Blocks == 0 && c.pilotCut(v) {
			return pace{}, usage(fmt.Errorf("--budget %v ended before the first block of %s; give more, such as --budget %v", c.opts.budget, v.Title(), 20*c.opts.budget))
		}
		if ratio.Blocks == 0 {
			c.failed = append(c.failed, fmt.Sprintf("%s %s: %s", v.Title(), v.Metric.Name, ratio.Reason))
		}
	}
	var trials time.Duration
	blocks := map[string]bool{}
	for _, t := range c.pilot.Trials {
		if t.Status != result.Skipped {
			trials += t.Elapsed
			blocks[fmt.Sprint(t.Warmup, t.Block)] = true
		}
	}
	return pace{setUp: max(0, c.opts.took-trials), block: trials / time.Duration(max(1, len(blocks)))}, nil
}

// pilotCut reports whether the budget ended before a value had a block on both targets.
func (c *abComparison) pilotCut(v ab.Value) bool {
	for _, t := range []string{c.design.A, c.design.B} {
		tried := slices.ContainsFunc(c.pilot.Trials, func(trial result.Trial) bool {
			return trial.Cell == (result.Cell{Benchmark: v.Name, Params: v.Params, Target: t}) && !trial.Warmup && trial.Status != result.Skipped
		})
		if !tried && c.spent >= c.opts.budget {
			return true
		}
	}
	return false
}

// measured reports whether the last run has a ratio.
func (c *abComparison) measured() bool {
	return slices.ContainsFunc(c.design.Values, func(v ab.Value) bool { return ab.Find(c.source, v, c.design.A, c.design.B).Blocks > 0 })
}

// available returns an error with the exit code for a target that does not work.
func available(run result.Run) error {
	var errs []error
	for _, t := range run.Targets {
		if t.Unavailable != "" {
			errs = append(errs, fmt.Errorf("%s is not available: %s", t.Name, t.Unavailable))
		}
	}
	if errs == nil {
		return nil
	}
	return &exitError{ExitNoTarget, errors.Join(errs...)}
}

// execute executes run n. Run 0 is the calibration. Each run has a session of its own, so its directories, cgroups and private
// daemons are new. Every second run opens B first.
func (c *abComparison) execute(ctx context.Context, n, blocks int) (execution.Outcome, error) {
	p := c.plan
	p.Blocks, p.Budget = blocks, remaining(c.opts.budget, c.spent)
	if n == 0 {
		p.Name = abPilotTitle
	}
	if p.Seed != nil {
		seed := *p.Seed + uint64(n)
		p.Seed = &seed
	}
	if n%2 == 1 {
		p.Targets = []plan.Pattern{p.Targets[1], p.Targets[0]}
	}
	if n > 0 && !c.opts.beside {
		c.opts.wait = true // the runs of others that began in between
	}
	var outcome execution.Outcome
	recorded := false
	c.opts.concluded = func(run result.Run, o execution.Outcome) error {
		c.last, outcome, recorded = run, o, true
		options := analysis.Options{EmulatedVerdicts: c.opts.emulated}
		c.source = analysis.NewSource(&run, options)
		return c.app.writeReport(reportOptions{format: formatHTML, file: filepath.Join(c.opts.dir, abPage(run.ID))}, report.New([]result.Run{run}, options))
	}
	err := c.app.execute(ctx, &c.opts.benchmarkOptions, p, nil)
	c.spent += c.opts.took
	c.interrupted = ctx.Err() != nil
	if err == nil && !recorded {
		err = errors.New("the run was not recorded")
	}
	return outcome, err
}

// remaining is the rest of a budget for a plan, in which 0 would be no limit.
func remaining(budget, spent time.Duration) time.Duration {
	return max(time.Millisecond, (budget - spent).Truncate(time.Millisecond))
}

// abPage is the name of the page of a run.
func abPage(id string) string { return "report-" + id + ".html" }

// pace is the time that runs take.
type pace struct{ setUp, block time.Duration }

// of returns the time of runs with this number of measured blocks each.
func (p pace) of(runs, blocks int) time.Duration {
	return time.Duration(runs) * (p.setUp + time.Duration(abWarmup+blocks)*p.block)
}

// schedule returns the number of runs and of blocks in each that take at most the time left. Numbers that are not 0 are given. The
// error of a time that is too short has the times.
func (p pace) schedule(left time.Duration, runs, blocks int) (int, int, error) {
	left -= left / 20           // the pace is an estimate
	fit := func(runs int) int { // blocks
		if p.block <= 0 {
			return plan.MaxBlocks
		}
		return min(plan.MaxBlocks, int((left/time.Duration(runs)-p.setUp)/p.block)-abWarmup)
	}
	switch {
	case runs > 0 && blocks > 0:
	case runs > 0:
		blocks = fit(runs)
	case blocks > 0:
		runs = abManyRuns
		if took := p.of(1, blocks); took > 0 {
			runs = min(int(left/took), abManyRuns)
		}
	default:
		runs = min(max(int(left/abRunTime), abUsualRuns), abManyRuns)
		for blocks = fit(runs); blocks < 1 && runs > ab.LeastRuns; blocks = fit(runs) {
			runs--
		}
	}
	if runs < ab.LeastRuns || blocks < 1 {
		return 0, 0, fmt.Errorf("after the calibration %v are left, and %d runs of %d blocks take %v (set-up %v, block %v)",
			left.Round(time.Millisecond), max(runs, ab.LeastRuns), max(blocks, 1), p.of(max(runs, ab.LeastRuns), max(blocks, 1)).Round(time.Millisecond),
			p.setUp.Round(time.Millisecond), p.block.Round(time.Millisecond))
	}
	return runs, blocks, nil
}
