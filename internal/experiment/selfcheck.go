package experiment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// The runs of a selfcheck.
const (
	selfcheckRuns  = 5
	selfcheckPilot = 10 // blocks of the calibration
	// selfcheckTraces is the number of traces of each of the two equal targets. A count that varies in one trace of ten escapes 20 traces with a probability
	// of 12 %.
	selfcheckTraces = 10
	// SelfcheckBudget is a budget that is long enough for most machines.
	SelfcheckBudget = 5 * time.Minute
)

// PilotError is the end of a selfcheck whose calibration has too few values.
type PilotError struct{ Err error }

func (e *PilotError) Error() string { return e.Err.Error() }

func (e *PilotError) Unwrap() error { return e.Err }

// Selfcheck compares a runtime with itself, without and with known delays. The sizes of the delays and the number of blocks follow from a
// calibration.
type Selfcheck struct {
	Series
	Target target.Target
	// Binary is the path of the runtime; empty for a fake target.
	Binary string

	// Pilot is the run of the calibration.
	Pilot result.Run
	// Runs have at least one measured trial that is ok, and Blocks measured blocks each.
	Runs   []result.Run
	Blocks int
	// Counts is the knowledge about the counts of the runtime; nil if the machine cannot trace.
	Counts *counts.Learned

	plan       plan.Plan
	dir        *workdir.Dir // of the adapters; nil without them
	base, same string
	// launches is set if Touchstone starts a process for each call.
	launches bool
	commands selfcheck.Commands
	delayed  []selfcheck.Delayed
	setUp    time.Duration // of a run
	pace     selfcheck.Pace
}

// NewSelfcheck returns the selfcheck of a target, or of the first default target whose runtime is installed if name is empty. The plan
// has the settings of the runs.
func NewSelfcheck(p plan.Plan, name string) (*Selfcheck, error) {
	c := &Selfcheck{plan: p}
	names := []string{name}
	if name == "" {
		names = []string{"oci/crun", "oci/runc"}
	}
	var err error
	for _, name := range names {
		if c.Target, err = target.Parse(name); err != nil {
			return nil, &execution.UsageError{Err: err}
		}
		runtime := p.Runtimes[c.Target.Runtime]
		switch {
		case c.Target.Runtime == "":
			return nil, refuse("--target %s has no runtime to delay; name another target, such as oci/crun", c.Target)
		case runtime.Type != "":
			return nil, refuse("--target %s is a shim without a binary, and cannot be delayed; name another target, such as oci/crun", c.Target)
		case c.Target.Engine != fake.Name:
			c.Binary, err = runtimes.Path(c.Target, runtime.Path)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, &UnavailableError{err}
	}
	description := engines.All(fake.NewClock(), nil).Describe(c.Target.Engine)
	c.launches, c.commands = description.Launches, description.Commands
	c.plan.Benchmarks, c.plan.Targets = nil, nil
	for _, o := range selfcheck.Operations() {
		if !slices.ContainsFunc(c.plan.Benchmarks, func(i plan.Item) bool { return i.Name == o.Benchmark }) {
			c.plan.Benchmarks = append(c.plan.Benchmarks, plan.Item{Name: o.Benchmark})
		}
	}
	c.plan.Runtimes = maps.Clone(p.Runtimes)
	c.plan.Warmup, c.plan.Precision, c.plan.MaxBlocks, c.plan.Trace = warmup, 0, 0, 0
	return c, nil
}

// Open makes the directory of the adapters, as the directory of a run: if this process is killed, the start of the next run and touchstone
// cleanup remove it. Fake targets have the delays as options, and need no directory.
func (c *Selfcheck) Open(roots workdir.Roots, runID string) (err error) {
	if c.dir, err = workdir.Create(roots, runID); err != nil {
		return fmt.Errorf("make a folder for the delaying programs: %w", err)
	}
	return nil
}

// Close removes the adapters.
func (c *Selfcheck) Close(ctx context.Context) error {
	if c.dir == nil {
		return nil
	}
	return c.dir.Remove(ctx, nil)
}

// add adds a target of the runtime to the plan, with delays by operation, and returns its name.
func (c *Selfcheck) add(name string, delays []time.Duration, kind selfcheck.Kind) (string, error) {
	t := c.Target
	latencies := map[string]time.Duration{}
	adapter := runtimes.Adapter{Binary: c.Binary}
	for i, d := range delays {
		verb := selfcheck.Operations()[i].Verb
		latencies[verb] = d
		if d > 0 {
			adapter.Delays = append(adapter.Delays, runtimes.Delay{Verb: verb, Time: d, Burn: kind == selfcheck.CPU})
		}
	}
	t.Runtime += "-" + name
	if t.Engine == fake.Name {
		var err error
		if t, err = fake.Slower(t, latencies); err != nil {
			return "", &execution.UsageError{Err: err}
		}
	} else {
		path, err := adapter.Write(filepath.Join(c.dir.Data, "adapters"), t.Runtime)
		if err != nil {
			return "", err
		}
		if c.plan.Runtimes == nil {
			c.plan.Runtimes = map[string]target.Runtime{}
		}
		c.plan.Runtimes[t.Runtime] = target.Runtime{Path: path, Options: c.plan.Runtimes[c.Target.Runtime].Options}
	}
	c.plan.Targets = append(c.plan.Targets, plan.Pattern(t))
	if name == "base" {
		c.plan.Baseline = t
	}
	return t.String(), nil
}

// Run executes the calibration and the runs.
func (c *Selfcheck) Run(ctx context.Context) (err error) {
	if c.base, err = c.add("base", nil, ""); err == nil {
		c.same, err = c.add("same", nil, "")
	}
	if err != nil {
		return err
	}
	if err := c.calibrate(ctx); err != nil || c.End == Interrupted {
		return err
	}
	n := 0 // runs
	err = c.follow(ctx, rule{
		next: func(context.Context) (Request, bool, error) {
			r := c.request("selfcheck", c.Blocks)
			r.share, r.setUp = selfcheckRuns-n, c.setUp
			return r, n < selfcheckRuns, nil
		},
		add: func(run Run) error {
			if run.Interrupted {
				return nil
			}
			if slices.ContainsFunc(run.Trials, func(t result.Trial) bool { return t.Status == result.OK && !t.Warmup }) {
				c.Runs = append(c.Runs, run.Run)
			}
			n++
			c.Line(fmt.Sprintf("run %d of %d: %v of %v are spent", n, selfcheckRuns, quantity.RoundedTime(c.Spent), c.Budget))
			return nil
		},
	})
	if c.End == OutOfBudget {
		c.Line(fmt.Sprintf("note: the budget ended after %d of %d runs, so the result is less certain; give more than --budget %v", n, selfcheckRuns, c.Budget))
	}
	return err
}

// request returns a run of the targets so far.
func (c *Selfcheck) request(name string, blocks int) Request {
	p := c.plan
	p.Name, p.Blocks = name, blocks
	return Request{Plan: p}
}

// learn traces the runtime against itself. Fake targets have no counts.
func (c *Selfcheck) learn(ctx context.Context) error {
	if c.Target.Engine == fake.Name {
		return nil
	}
	r := c.request("selfcheck counts", 1)
	r.Plan.Warmup, r.Plan.Trace = 0, selfcheckTraces
	run, err := c.execute(ctx, r)
	if err != nil || c.End == Interrupted {
		return err
	}
	var cells []counts.Cell
	traced := counts.Collect([]result.Run{run.Run})
	for _, base := range traced {
		place := slices.IndexFunc(traced, func(t counts.Traced) bool {
			return t.Target == c.same && t.Benchmark == base.Benchmark && t.Params == base.Params
		})
		if base.Target == c.base && place >= 0 && len(base.Traces) > 0 && len(traced[place].Traces) > 0 {
			cells = append(cells, counts.Compare(analysis.Key{Name: base.Benchmark, Params: base.Params},
				counts.Side{Target: c.base, Traces: base.Traces}, counts.Side{Target: c.same, Traces: traced[place].Traces}, nil))
		}
	}
	c.Counts = counts.Learn(cells)
	return nil
}

// calibrate executes a short run of the runtime against itself. The sizes of the delays and the number of blocks follow from it.
func (c *Selfcheck) calibrate(ctx context.Context) error {
	if _, _, err := execution.Check(c.plan); err != nil {
		return &execution.UsageError{Err: err}
	}
	run, err := c.execute(ctx, c.request("selfcheck calibration", selfcheckPilot))
	if err != nil || c.End == Interrupted {
		return err
	}
	if err := checkTargets(run.Run); err != nil {
		return err
	}
	c.Pilot = run.Run
	if err := c.learn(ctx); err != nil || c.End == Interrupted {
		return err
	}
	if c.left() <= 0 {
		return refuse("--budget %v ended within the calibration; give more, such as --budget %v", c.Budget, SelfcheckBudget)
	}
	times := map[string]time.Duration{}
	trials := map[string]int{}
	for _, t := range run.Trials {
		if t.Status != result.Skipped {
			times[t.Benchmark] += t.Elapsed
			trials[t.Benchmark]++
		}
	}
	targets := time.Duration(2 + len(selfcheck.Kinds())*selfcheck.Sizes)
	c.pace = selfcheck.Pace{SetUp: run.setUp(), Block: map[string]time.Duration{}}
	pace := pace{setUp: c.pace.SetUp * targets / 2} // each target is opened
	for name, n := range trials {
		c.pace.Block[name] = 2 * times[name] / time.Duration(n)
		pace.block += targets * times[name] / time.Duration(n)
	}
	c.setUp = pace.setUp
	if err := c.size(pace, int(targets)); err != nil {
		return err
	}
	for i := range c.delayed {
		d := &c.delayed[i]
		if d.Target, err = c.add(fmt.Sprintf("%s%d", strings.ToLower(string(d.Kind)), d.Size+1), d.Delays, d.Kind); err != nil {
			return err
		}
	}
	c.Line(fmt.Sprintf("%d runs of %d blocks of %d targets", selfcheckRuns, c.Blocks, targets))
	return nil
}

// size finds the greatest number of blocks that fits into the budget, and the delays for it. undelayed is the pace of all targets without
// delays. The verdicts of fewer blocks need longer delays, which take time in each block.
func (c *Selfcheck) size(undelayed pace, targets int) error {
	// delay returns the pace with the delays for a number of blocks.
	delay := func(blocks int) (p pace, err error) {
		if c.delayed, err = selfcheck.Plan(c.Pilot, c.base, c.same, blocks, c.commands); err != nil {
			return p, &PilotError{fmt.Errorf("check %s: %w", c.Target, err)}
		}
		return pace{undelayed.setUp, undelayed.block + selfcheck.Added(c.Pilot, c.delayed, c.commands)}, nil
	}
	limit := withoutReserve(c.left())
	c.Blocks = undelayed.blocks(limit, selfcheckRuns)
	for c.Blocks >= stats.MinSamples {
		p, err := delay(c.Blocks)
		if err != nil {
			return err
		}
		blocks := p.blocks(limit, selfcheckRuns)
		if blocks >= c.Blocks {
			return nil
		}
		c.Blocks = blocks
	}
	p, err := delay(stats.MinSamples)
	if err != nil {
		return err
	}
	minimum := p.time(selfcheckRuns, stats.MinSamples)
	return refuse("--budget %v: after the calibration %v are left, and %d runs of %d blocks of %d targets take %v; give at least --budget %v",
		c.Budget, quantity.RoundedTime(c.left()), selfcheckRuns, stats.MinSamples, targets, quantity.RoundedTime(minimum), quantity.TimeWithReserve((c.Spent+minimum)*21/20))
}

// Check judges the runs.
func (c *Selfcheck) Check() selfcheck.Check {
	return selfcheck.Evaluate(c.Runs, c.base, c.same, c.delayed, c.commands, c.pace, c.launches)
}
