package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Defaults of ab.
const (
	abBenchmark = "operations.container.lifecycle"
	abBudget    = 10 * time.Minute
	abMargin    = "3%"
)

// firstCounts is the value of --first.
const firstCounts = "counts"

type abOptions struct {
	benchmarkOptions
	sides        [2]string // --a, --b
	file         string    // the plan
	output       string    // the file of the printed comparison
	summary      bool
	inconclusive inconclusive
	margin       string
	metrics      []string
	// repeats is the number of runs, blocks the number of blocks in each; 0 follows from the budget.
	repeats, blocks int
	budget          time.Duration
	emulated        bool
	first           string   // --first
	failOn          []string // --fail-on
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
name of a runtime with a path ends in -a or -b.

--budget limits the time of all runs together. Their number and their blocks follow
from it, after a short run for calibration. Without --metric, the main metric of each
benchmark decides. Several values share the probability of an error.

The results are in FOLDER/touchstone.db, with a page for each run. The comparison is the
page FOLDER/ab.html, and FOLDER/ab.json for programs.

--first counts begins with three traced trials of each build, and shows which system calls
changed in number. A difference must hold in ten further traces of each. Time is measured
only where counts differ, or if --metric names a value. --fail-on counts:NAMES>NUMBER is a
gate: B makes at most so many more of these calls. docs/trace.md explains both.

-o junit writes a test case for each value: worse is a failure, and inconclusive an error,
a warning or a skipped case by --inconclusive. The exit code stays.`,
		Example: `  touchstone ab --a oci/runc=/usr/bin/runc --b oci/runc=./runc
  touchstone ab --a oci/crun=/old/crun --b oci/crun=/new/crun --margin 2% --budget 30m
  touchstone ab --a containerd/runc=/old --b containerd/runc=/new --filter operations
  touchstone ab --a oci/runc --b oci/crun --metric HostCPU --margin 10%
  touchstone ab --a oci/runc=./old --b oci/runc=./new --first counts --fail-on 'counts:all>0'
  touchstone ab --a oci/runc=./old --b oci/runc=./new -o junit -O junit.xml --github-summary`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			keepGiven(f, "timeout", &o.Timeout)
			keepGiven(f, "seed", &o.Seed)
			keepGiven(f, "managed", &o.Managed)
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
	addRecorder(cmd, &opts.benchmarkOptions)
	f.BoolVar(&opts.emulated, strings.TrimPrefix(finding.EmulatedVerdictsFlag, "--"), false, "answer questions about speed on an emulated CPU too")
	f.StringVar(&opts.first, "first", "", "begin with `counts`, and measure time only where they differ")
	f.StringArrayVar(&opts.failOn, "fail-on", nil, "fail if B has higher counts than A, by a `GATE` such as counts:mount,execve>0")
	_ = cmd.RegisterFlagCompletionFunc("first", cobra.FixedCompletions([]string{firstCounts}, cobra.ShellCompDirectiveNoFileComp))
	addSecretFile(cmd, &opts.secret)
	addEngineFlags(cmd, o)
	addFile(cmd, &opts.output)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed comparison", documentFormats(formatHTML)...)
	addInconclusive(cmd, &opts.inconclusive)
	addSummary(cmd, &opts.summary)
	return cmd
}

// parseBuild reads TARGET=PATH or TARGET. The text after the last = is a path if it begins like one and the text before
// it is a target; the value of an option may begin like a path too.
func parseBuild(flag, text string) (experiment.Build, error) {
	if text == "" {
		return experiment.Build{}, usage(fmt.Errorf("%s names no build: give %s oci/runc=/path/to/runc", flag, flag))
	}
	if index := strings.LastIndex(text, "="); index >= 0 {
		path := text[index+1:]
		t, err := target.Parse(text[:index])
		if err == nil && slices.ContainsFunc([]string{"/", "./", "../"}, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			if t.Runtime == "" || t.Engine == fake.Name {
				return experiment.Build{}, usage(fmt.Errorf("%s %s: %s has no binary; leave out =%s", flag, text, t, path))
			}
			path, err := filepath.Abs(path)
			return experiment.Build{Target: t, Path: path}, err
		}
	}
	t, err := target.Parse(text)
	if err != nil {
		return experiment.Build{}, usage(fmt.Errorf("%s: %w; a path begins with / or ./", flag, err))
	}
	return experiment.Build{Target: t}, nil
}

// newAB returns the comparison that the flags describe.
func newAB(opts *abOptions) (*experiment.AB, error) {
	margin, err := plan.ParseShare("--margin", opts.margin)
	if err != nil {
		return nil, usage(err)
	}
	var builds [2]experiment.Build
	for i, flag := range []string{"--a", "--b"} {
		if builds[i], err = parseBuild(flag, opts.sides[i]); err != nil {
			return nil, err
		}
	}
	runtimes, err := userRuntimes()
	if err != nil {
		return nil, err
	}
	p := plan.Quick()
	if opts.file != "" {
		if p, err = plan.Load(opts.file); err != nil {
			return nil, usage(err)
		}
		for i := range p.Benchmarks {
			p.Benchmarks[i].Blocks = 0
		}
	} else if opts.overrides.Filters == nil {
		opts.overrides.Filters = []string{abBenchmark}
	}
	p.Baseline, p.Targets = target.Target{}, nil // before flags are checked against them
	if p, err = applied(p, runtimes, opts.overrides); err != nil {
		return nil, usage(err)
	}
	c, err := experiment.NewAB(p, builds, opts.metrics, float64(margin))
	if err == nil {
		c.Counting, err = opts.counting(builds)
	}
	return c, err
}

// counting reads the flags about counts.
func (opts *abOptions) counting(builds [2]experiment.Build) (c experiment.Counting, err error) {
	if opts.first != "" && opts.first != firstCounts {
		return c, usage(fmt.Errorf("--first %s: only %s can come first", opts.first, firstCounts))
	}
	c.First, c.Wanted = opts.first == firstCounts, opts.metrics != nil
	for _, text := range opts.failOn {
		g, err := counts.ParseGate("--fail-on "+text, text)
		if err != nil {
			return c, usage(err)
		}
		c.Gates = append(c.Gates, g)
	}
	machine := host.Facts("/")
	learned, err := learnedCounts(&machine)
	if err == nil && builds[0].Target.String() == builds[1].Target.String() {
		c.Learned = learned(builds[0].Target.String())
	}
	return c, err
}

// ab executes the runs of a comparison, and shows the answer.
func (a *App) ab(ctx context.Context, opts abOptions) error {
	c, err := newAB(&opts)
	if err != nil {
		return err
	}
	summary, err := summaryFile(opts.summary)
	if err != nil {
		return err
	}
	c.Executor, c.Budget, c.Line = &recorder{a, &opts.benchmarkOptions}, opts.budget, a.line
	c.Runs, c.Blocks, c.Emulated = opts.repeats, opts.blocks, opts.emulated
	c.Publish = func(r report.Report) error {
		return a.writeReport(reportOptions{format: formatHTML, file: filepath.Join(opts.dir, abPage(r.Runs[0].ID))}, r)
	}
	failure := c.Run(ctx)
	if failure != nil && (c.Comparison == nil || len(c.Comparison.Done) == 0) {
		return failure
	}
	// The results so far are shown after an error too.
	return orExit(failure, a.concludeAB(c, &opts, summary, failure))
}
