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

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Defaults of ab.
const (
	abBenchmark = "operations.container.lifecycle"
	abBudget    = 10 * time.Minute
	abMargin    = "3%"
)

type abOptions struct {
	benchmarkOptions
	sides   [2]string // --a, --b
	file    string    // the plan
	output  string    // the file of the printed comparison
	summary bool
	margin  string
	metrics []string
	// repeats is the number of runs, blocks the number of blocks in each; 0 follows from the budget.
	repeats, blocks int
	budget          time.Duration
	emulated        bool
}

func (a *App) abCommand() *cobra.Command {
	var opts abOptions
	o := &opts.overrides
	cmd := &cobra.Command{
		Use:   "ab",
		Short: "Compare two builds of a runtime, and decide whether the second is worse",
		Long: `Compares two builds of a runtime, A (the old one) and B (the new one). Both are targets
of the same runs. Many short runs, each with a session, an order and directories of its
own, show how much the ratio varies from run to run. The answer is one of three:

  worse than the margin     exit code 4
  not worse by the margin   exit code 0
  inconclusive              exit code 6, with the flags of a comparison that decides

The first two are each wrong in at most 2.5 % of all comparisons. The runs end as
soon as the answer is known. docs/ab.md explains the method.

A side is a target with the path of its runtime, TARGET=PATH, or a target alone. The
names of the two targets end in -a and -b, if both are builds of one runtime.

--budget limits the time of all runs together. Their number and their blocks follow
from it, after a short run for calibration. Without --metric, the main metric of each
benchmark decides. Several values share the probability of an error.

The results are in FOLDER/touchstone.db, with a page for each run. The comparison is the
page FOLDER/ab.html, and FOLDER/ab.json for programs.

-o junit writes a test case for each value: worse is a failure, inconclusive an error.`,
		Example: `  touchstone ab --a oci/runc=/usr/bin/runc --b oci/runc=./runc
  touchstone ab --a oci/crun=/old/crun --b oci/crun=/new/crun --margin 2% --budget 30m
  touchstone ab --a containerd/runc=/old --b containerd/runc=/new --filter operations
  touchstone ab --a oci/runc --b oci/crun --metric HostCPU --margin 10%
  touchstone ab --a oci/runc=./old --b oci/runc=./new -o junit -O junit.xml --github-summary`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			keepGiven(f, "timeout", &o.Timeout)
			keepGiven(f, "seed", &o.Seed)
			keepGiven(f, "managed", &o.Managed)
			if opts.wait && opts.beside {
				return usage(errors.New("--wait and --allow-concurrent exclude each other; leave out one of them"))
			}
			if f.Changed("repeat") && (opts.repeats < ab.LeastRuns || opts.repeats > ab.MostRuns) {
				return usage(fmt.Errorf("--repeat %d: give %d to %d runs; fewer do not show how much the ratio varies from run to run", opts.repeats, ab.LeastRuns, ab.MostRuns))
			}
			if f.Changed("blocks") && (opts.blocks < 1 || opts.blocks > plan.MaxBlocks) {
				return usage(fmt.Errorf("--blocks %d: give 1 to %d blocks", opts.blocks, plan.MaxBlocks))
			}
			if opts.budget <= 0 {
				return usage(fmt.Errorf("--budget %v: give a time above 0, such as %v", opts.budget, abBudget))
			}
			return a.ab(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.sides[0], "a", "", "the old `BUILD`, as TARGET=PATH or TARGET")
	f.StringVar(&opts.sides[1], "b", "", "the new `BUILD`")
	f.StringVar(&opts.margin, "margin", abMargin, "the largest difference that does not matter, as a `PERCENTAGE`")
	f.StringVarP(&opts.file, "file", "f", "", "plan `FILE` with the benchmarks and settings; its targets and blocks are ignored")
	f.StringSliceVar(&o.Filters, "filter", nil, "benchmarks by whole components of their `NAMES` (default "+abBenchmark+")")
	f.StringSliceVar(&opts.metrics, "metric", nil, "compare these `METRICS`, separated by commas")
	f.DurationVar(&opts.budget, "budget", abBudget, "longest `TIME` for all runs together")
	f.IntVar(&opts.repeats, "repeat", 0, "`NUMBER` of runs, in place of the number that follows from the budget")
	f.IntVar(&opts.blocks, "blocks", 0, "`NUMBER` of blocks in each run, in place of the number that follows from the budget")
	o.Timeout = f.Duration("timeout", 0, "longest `TIME` for one trial, such as 2m")
	o.Seed = f.Uint64("seed", 0, "`NUMBER` that determines the order of trials; each run adds one to it")
	f.StringArrayVar(&o.Limits, "limit", nil, "`LIMITS` of containers, such as cpus=2,cpuset=0-1,memory=4GiB,pids=none")
	f.StringArrayVar(&o.Pin, "pin", nil, "`CPUS` for the parts of the run: workload=2-3,engines=1,touchstone=0")
	f.StringVarP(&opts.dir, "dir", "d", "out", "output `FOLDER`")
	f.BoolVar(&opts.wait, "wait", false, "wait for the end of another run on this machine")
	f.BoolVar(&opts.beside, "allow-concurrent", false, "start beside another run on this machine; the reports mention it")
	f.BoolVar(&opts.emulated, strings.TrimPrefix(report.EmulatedVerdictsFlag, "--"), false, "answer questions about speed on an emulated CPU too")
	addSecretFile(cmd, &opts.secret)
	addEngineFlags(cmd, o)
	addFile(cmd, &opts.output)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed comparison", documentFormats()...)
	addSummary(cmd, &opts.summary)
	return cmd
}

// build is one side of ab: a target, and the binary of its runtime if one is given.
type build struct {
	target target.Target
	path   string // absolute
}

// parseBuild reads TARGET=PATH or TARGET. The text after the last = is a path if it begins like one and the text before
// it is a target; the value of an option may begin like a path too.
func parseBuild(flag, text string) (build, error) {
	if text == "" {
		return build{}, usage(fmt.Errorf("%s names no build: give %s oci/runc=/path/to/runc", flag, flag))
	}
	if at := strings.LastIndex(text, "="); at >= 0 {
		path := text[at+1:]
		t, err := target.Parse(text[:at])
		if err == nil && slices.ContainsFunc([]string{"/", "./", "../"}, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			if t.Runtime == "" || t.Engine == fake.Name {
				return build{}, usage(fmt.Errorf("%s %s: %s has no binary; leave out =%s", flag, text, t, path))
			}
			path, err := filepath.Abs(path)
			return build{t, path}, err
		}
	}
	t, err := target.Parse(text)
	if err != nil {
		return build{}, usage(fmt.Errorf("%s: %w; a path begins with / or ./", flag, err))
	}
	return build{target: t}, nil
}

// setBuilds makes two builds the targets of a plan. A build with a path is a runtime of its own, whose name ends in -a or -b. It keeps
// the options that the plan has for the runtime.
func setBuilds(p *plan.Plan, builds [2]build) error {
	p.Runtimes = maps.Clone(p.Runtimes)
	p.Targets = nil
	for i, b := range builds {
		if b.path != "" {
			name := b.target.Runtime + "-" + string("ab"[i])
			if p.Runtimes == nil {
				p.Runtimes = map[string]target.Runtime{}
			}
			if _, taken := p.Runtimes[name]; taken {
				return usage(fmt.Errorf("the plan has a runtime %s, and ab gives this name to %s; rename it in the plan", name, b.path))
			}
			p.Runtimes[name] = target.Runtime{Path: b.path, Options: p.Runtimes[b.target.Runtime].Options}
			b.target.Runtime = name
		}
		p.Targets = append(p.Targets, plan.Pattern(b.target))
	}
	a, b := target.Target(p.Targets[0]), target.Target(p.Targets[1])
	if a.String() == b.String() {
		return usage(fmt.Errorf("both builds are %s; give each a binary, such as --a %s=/old --b %s=/new", a, a, b))
	}
	if (a.Engine == fake.Name) != (b.Engine == fake.Name) {
		return usage(fmt.Errorf("%s and %s: a fake target and a real one do not share a clock; give two of one kind", a, b))
	}
	p.Baseline = a
	return nil
}

// abPlan returns the plan of the runs, with its work.
func (a *App) abPlan(opts *abOptions) (plan.Plan, []plan.Work, error) {
	var builds [2]build
	for i, flag := range []string{"--a", "--b"} {
		b, err := parseBuild(flag, opts.sides[i])
		if err != nil {
			return plan.Plan{}, nil, err
		}
		builds[i] = b
	}
	runtimes, err := userRuntimes()
	if err != nil {
		return plan.Plan{}, nil, err
	}
	p := plan.Quick()
	if opts.file != "" {
		if p, err = plan.Load(opts.file); err != nil {
			return plan.Plan{}, nil, usage(err)
		}
		for i := range p.Benchmarks {
			p.Benchmarks[i].Blocks = 0
		}
	} else if opts.overrides.Filters == nil {
		opts.overrides.Filters = []string{abBenchmark}
	}
	p.Baseline, p.Targets = target.Target{}, nil // before flags are checked against them
	if p, err = applied(p, runtimes, opts.overrides); err != nil {
		return plan.Plan{}, nil, usage(err)
	}
	if err := setBuilds(&p, builds); err != nil {
		return plan.Plan{}, nil, err
	}
	p.Name, p.Precision, p.MaxBlocks, p.Warmup, p.Export, p.TouchstoneOutput = "ab", 0, 0, abWarmup, "", ""
	work, _, err := execution.Check(p)
	if err != nil {
		return plan.Plan{}, nil, usage(err)
	}
	return p, work, nil
}

// abValues selects the values to compare: the named metrics, or the main metric of each benchmark.
func abValues(work []plan.Work, metrics []string) ([]ab.Value, error) {
	var values []ab.Value
	var known []string
	found := map[string]bool{}
	for _, w := range work {
		key := report.Key{Name: w.Benchmark.Name, Params: w.Key()}
		chosen := slices.DeleteFunc(slices.Clone(w.Benchmark.Metrics), func(m result.Metric) bool { return m.DerivedFrom != "" || m.Group != "" })
		for _, m := range chosen {
			known = append(known, m.Name)
		}
		if metrics == nil && len(chosen) > 0 {
			at := max(0, slices.IndexFunc(chosen, func(m result.Metric) bool { return m.Phrase != "" }))
			values = append(values, ab.Value{Key: key, Metric: chosen[at]})
		}
		for _, m := range chosen {
			if slices.Contains(metrics, m.Name) {
				found[m.Name] = true
				values = append(values, ab.Value{Key: key, Metric: m})
			}
		}
	}
	for _, name := range metrics {
		if !found[name] {
			slices.Sort(known)
			return nil, usage(fmt.Errorf("--metric %s: no selected benchmark has this metric; they have %s", name, strings.Join(slices.Compact(known), ", ")))
		}
	}
	if len(values) == 0 {
		return nil, usage(errors.New("--filter: no selected benchmark has a metric to compare; select others"))
	}
	return values, nil
}

// ab executes the runs of a comparison, and shows the answer.
func (a *App) ab(ctx context.Context, opts abOptions) error {
	margin, err := plan.ParseShare("--margin", opts.margin)
	if err != nil {
		return usage(err)
	}
	p, work, err := a.abPlan(&opts)
	if err != nil {
		return err
	}
	values, err := abValues(work, opts.metrics)
	if err != nil {
		return err
	}
	summary, err := summaryFile(opts.summary)
	if err != nil {
		return err
	}
	c := abComparison{app: a, opts: &opts, summary: summary, plan: p, design: ab.Design{
		A: target.Target(p.Targets[0]).String(), B: target.Target(p.Targets[1]).String(),
		Margin: float64(margin), Values: values,
	}}
	c.broken = c.run(ctx)
	if c.broken != nil && (c.series == nil || len(c.series.Done) == 0) {
		return c.broken
	}
	// The results so far are shown after an error too.
	return orExit(c.broken, c.conclude())
}
