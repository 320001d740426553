package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// The runs of a selfcheck.
const (
	selfcheckRuns   = 5
	selfcheckPilot  = 10 // blocks of the calibration
	selfcheckBudget = 5 * time.Minute
)

type selfcheckOptions struct {
	benchmarkOptions
	target string
	budget time.Duration
	show   bool
}

func (a *App) selfcheckCommand() *cobra.Command {
	var opts selfcheckOptions
	cmd := &cobra.Command{
		Use:   "selfcheck",
		Short: "Find the smallest difference that this machine shows",
		Long: `Compares a runtime with itself, without and with known delays, and shows what
measurements on this machine can show:

  - false alarms: how often the runtime differs from itself
  - the smallest delay that is found at create, start, exec and delete: delays that
    sleep, and delays that use a CPU
  - the part of Touchstone itself in each operation
  - the smallest delay that the verdict of a comparison of two targets shows in 1, 5
    and 20 minutes, in any part of the distribution, with a probability of 80 %

A small program of Touchstone adds the delays before it executes the runtime. The
runtime without delays goes through the same program.

The result is stored for this machine, and later runs and their reports quote it.
--show prints the stored results.`,
		Example: `  touchstone selfcheck
  touchstone selfcheck --target containerd/runc --managed --budget 10m
  touchstone selfcheck --show`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keepGiven(cmd.Flags(), "managed", &opts.overrides.Managed)
			if opts.wait && opts.beside {
				return usage(errors.New("--wait and --allow-concurrent exclude each other; leave out one of them"))
			}
			if opts.show {
				return a.showSelfchecks(opts.format)
			}
			if opts.budget <= 0 {
				return usage(fmt.Errorf("--budget %v: give a time above 0, such as %v", opts.budget, selfcheckBudget))
			}
			return a.selfcheck(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.target, "target", "", "the `TARGET` to check (default oci/crun or oci/runc, the first that is installed)")
	f.DurationVar(&opts.budget, "budget", selfcheckBudget, "longest `TIME` for all runs together")
	f.BoolVar(&opts.show, "show", false, "print the stored results, and measure nothing")
	f.StringVarP(&opts.dir, "dir", "d", "out", "output `FOLDER`")
	f.BoolVar(&opts.wait, "wait", false, "wait for the end of another run on this machine")
	f.BoolVar(&opts.beside, "allow-concurrent", false, "start beside another run on this machine; the reports mention it")
	addEngineFlags(cmd, &opts.overrides)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed result", formatTable, formatJSON)
	return cmd
}

// checked is a selfcheck under way.
type checked struct {
	app        *App
	opts       *selfcheckOptions
	plan       plan.Plan
	target     target.Target
	binary     string // of the runtime; empty for a fake target
	dir        string // of the adapters
	base, same string
	// launches is set if Touchstone starts a process for each call.
	launches bool
	commands selfcheck.Commands

	blocks  int
	delayed []selfcheck.Delayed
	setUp   time.Duration // of a run
	pace    selfcheck.Pace
	pilot   result.Run
	runs    []result.Run
	spent   time.Duration
}

// selfcheck executes the runs, and shows and stores the result.
func (a *App) selfcheck(ctx context.Context, opts selfcheckOptions) (err error) {
	c := checked{app: a, opts: &opts}
	if err := c.prepare(); err != nil {
		return err
	}
	if err := storable(); err != nil {
		return err
	}
	undo, err := writable(opts.dir)
	if err != nil {
		return err
	}
	defer undo()
	if c.target.Engine != fake.Name { // fake targets have the delays as options
		own, failed := c.open(workdir.HostRoots())
		if failed != nil {
			return failed
		}
		defer func() { err = orExit(own.Remove(context.WithoutCancel(ctx), nil), err) }()
	}
	if c.base, err = c.add("base", nil, ""); err == nil {
		c.same, err = c.add("same", nil, "")
	}
	if err != nil {
		return err
	}
	if err := c.calibrate(ctx); err != nil {
		return err
	}
	for n := range selfcheckRuns {
		if c.spent >= opts.budget {
			a.line(fmt.Sprintf("note: the budget ended after %d of %d runs, so the result is less certain; give more than --budget %v", n, selfcheckRuns, opts.budget))
			break
		}
		run, err := c.execute(ctx, "selfcheck", c.blocks, selfcheckRuns-n)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(run.Trials, func(t result.Trial) bool { return t.Status == result.OK && !t.Warmup }) {
			c.runs = append(c.runs, run)
		}
		a.line(fmt.Sprintf("run %d of %d: %v of %v are spent", n+1, selfcheckRuns, quantity.RoundedTime(c.spent), opts.budget))
	}
	return c.conclude()
}

// prepare finds the runtime.
func (c *checked) prepare() error {
	p, err := quickPlan(c.opts.overrides)
	if err != nil {
		return err
	}
	candidates := []string{c.opts.target}
	if c.opts.target == "" {
		candidates = []string{"oci/crun", "oci/runc"}
	}
	for _, name := range candidates {
		if c.target, err = target.Parse(name); err != nil {
			return usage(err)
		}
		given := p.Runtimes[c.target.Runtime]
		switch {
		case c.target.Runtime == "":
			return usage(fmt.Errorf("--target %s has no runtime to delay; name another target, such as oci/crun", c.target))
		case given.Type != "":
			return usage(fmt.Errorf("--target %s is a shim without a binary, and cannot be delayed; name another target, such as oci/crun", c.target))
		case c.target.Engine == fake.Name:
			err = nil
		default:
			c.binary, err = runtimes.Path(c.target, given.Path)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return &exitError{ExitNoTarget, err}
	}
	about := engines.All(fake.NewClock(), nil).Describe(c.target.Engine)
	c.launches, c.commands = about.Launches, about.Commands
	p.Benchmarks, p.Targets = nil, nil
	for _, o := range selfcheck.Operations() {
		if !slices.ContainsFunc(p.Benchmarks, func(i plan.Item) bool { return i.Name == o.Benchmark }) {
			p.Benchmarks = append(p.Benchmarks, plan.Item{Name: o.Benchmark})
		}
	}
	p.Runtimes = maps.Clone(p.Runtimes)
	p.Warmup, p.Precision, p.MaxBlocks = abWarmup, 0, 0
	c.plan = p
	return nil
}

// open makes the directory of the adapters, as the directory of a run: if this process is killed, the start of the next run and touchstone
// cleanup remove it.
func (c *checked) open(roots workdir.Roots) (*workdir.Dir, error) {
	own, err := workdir.Create(roots, c.app.env.RunID())
	if err != nil {
		return nil, fmt.Errorf("make a folder for the delaying programs: %w", err)
	}
	c.dir = filepath.Join(own.Data, "adapters")
	return own, nil
}

// add adds a target of the runtime to the plan, with delays by operation, and returns its name.
func (c *checked) add(name string, delays []time.Duration, kind selfcheck.Kind) (string, error) {
	t := c.target
	by := map[string]time.Duration{}
	adapter := runtimes.Adapter{Binary: c.binary}
	for i, d := range delays {
		verb := selfcheck.Operations()[i].Verb
		by[verb] = d
		if d > 0 {
			adapter.Delays = append(adapter.Delays, runtimes.Delay{Verb: verb, Time: d, Burn: kind == selfcheck.CPU})
		}
	}
	t.Runtime += "-" + name
	if t.Engine == fake.Name {
		var err error
		if t, err = fake.Slower(t, by); err != nil {
			return "", usage(err)
		}
	} else {
		path, err := adapter.Write(c.dir, t.Runtime)
		if err != nil {
			return "", err
		}
		if c.plan.Runtimes == nil {
			c.plan.Runtimes = map[string]target.Runtime{}
		}
		c.plan.Runtimes[t.Runtime] = target.Runtime{Path: path, Options: c.plan.Runtimes[c.target.Runtime].Options}
	}
	c.plan.Targets = append(c.plan.Targets, plan.Pattern(t))
	if name == "base" {
		c.plan.Baseline = t
	}
	return t.String(), nil
}

// calibrate executes a short run of the runtime against itself. The sizes of the delays and the number of blocks follow from it.
func (c *checked) calibrate(ctx context.Context) error {
	if _, _, err := execution.Check(c.plan); err != nil {
		return usage(err)
	}
	run, err := c.execute(ctx, "selfcheck calibration", selfcheckPilot, 1)
	if err != nil {
		return err
	}
	if err := available(run); err != nil {
		return err
	}
	c.pilot = run
	took := map[string]time.Duration{}
	trials := map[string]int{}
	var all time.Duration
	for _, t := range run.Trials {
		if t.Status != result.Skipped {
			took[t.Benchmark] += t.Elapsed
			trials[t.Benchmark]++
			all += t.Elapsed
		}
	}
	if c.spent >= c.opts.budget {
		return usage(fmt.Errorf("--budget %v ended within the calibration; give more, such as --budget %v", c.opts.budget, selfcheckBudget))
	}
	c.pace = selfcheck.Pace{SetUp: max(0, c.opts.took-all), Block: map[string]time.Duration{}}
	var block time.Duration // of all targets and benchmarks
	targets := time.Duration(2 + len(selfcheck.Kinds())*selfcheck.Sizes)
	for name, n := range trials {
		c.pace.Block[name] = 2 * took[name] / time.Duration(n)
		block += targets * took[name] / time.Duration(n)
	}
	c.setUp = c.pace.SetUp * targets / 2 // each target is opened
	if err := c.size(targets, block); err != nil {
		return err
	}
	for i := range c.delayed {
		d := &c.delayed[i]
		if d.Target, err = c.add(fmt.Sprintf("%s%d", strings.ToLower(string(d.Kind)), d.Size+1), d.Delays, d.Kind); err != nil {
			return err
		}
	}
	c.app.line(fmt.Sprintf("%d runs of %d blocks of %d targets", selfcheckRuns, c.blocks, targets))
	return nil
}

// size finds the greatest number of blocks that fits into the budget, and the delays for it. block is the time of a block of all targets without
// delays. The verdicts of fewer blocks need longer delays, which take time in each block.
func (c *checked) size(targets, block time.Duration) error {
	left := c.opts.budget - c.spent
	delays := func(blocks int) (err error) {
		if c.delayed, err = selfcheck.Plan(c.pilot, c.base, c.same, blocks, c.commands); err != nil {
			return &exitError{ExitTrials, fmt.Errorf("check %s: %w; touchstone report %s -d %s shows the reason", c.target, err, c.pilot.ID, c.opts.dir)}
		}
		return nil
	}
	fit := func(block time.Duration) int {
		if block <= 0 {
			return plan.MaxBlocks
		}
		return min(plan.MaxBlocks, int(((left-left/20)/selfcheckRuns-c.setUp)/block)-abWarmup)
	}
	c.blocks = fit(block)
	for c.blocks >= stats.MinSamples {
		if err := delays(c.blocks); err != nil {
			return err
		}
		fits := fit(block + selfcheck.Added(c.pilot, c.delayed, c.commands))
		if fits >= c.blocks {
			return nil
		}
		c.blocks = fits
	}
	if err := delays(stats.MinSamples); err != nil {
		return err
	}
	block += selfcheck.Added(c.pilot, c.delayed, c.commands)
	needed := c.spent + selfcheckRuns*(c.setUp+(stats.MinSamples+abWarmup)*block)
	return usage(fmt.Errorf("--budget %v: after the calibration %v are left, and %d runs of %d blocks of %d targets take %v; give at least --budget %v",
		c.opts.budget, quantity.RoundedTime(left), selfcheckRuns, stats.MinSamples, targets, quantity.RoundedTime(needed-c.spent), quantity.TimeWithReserve(needed*21/20)))
}

// execute executes one run, with its share of the time left for a number of runs.
func (c *checked) execute(ctx context.Context, name string, blocks, runs int) (run result.Run, err error) {
	p := c.plan
	p.Name, p.Blocks, p.Budget = name, blocks, remaining((c.opts.budget-c.spent)/time.Duration(runs), c.setUp)
	var outcome execution.Outcome
	c.opts.concluded = func(r result.Run, o execution.Outcome) error {
		run, outcome = r, o
		return nil
	}
	err = c.app.execute(ctx, &c.opts.benchmarkOptions, p, nil)
	c.spent += c.opts.took
	if !c.opts.beside {
		c.opts.wait = true // for the runs of others that begin between ours
	}
	if err == nil && outcome.Interrupted {
		err = &exitError{ExitInterrupted, errors.New("interrupted; the selfcheck has no result")}
	}
	return run, err
}
