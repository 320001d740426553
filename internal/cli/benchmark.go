package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// databaseName is the name of the results file in an output folder.
const databaseName = "touchstone.db"

type benchmarkOptions struct {
	files     []string
	builtin   string // name of a built-in plan
	dir       string
	resume    string
	overrides plan.Overrides
	format    format
	summary   format
	secret    string   // the file with the secret of touchstone peer
	wait      bool     // for the end of another run on this machine
	beside    bool     // start beside another run
	executed  []string // the IDs of the recorded runs
	// changesPlan is set if a flag would change the plan of a resumed run.
	changesPlan bool
}

func (a *App) benchmarkCommand() *cobra.Command {
	var opts benchmarkOptions
	o := &opts.overrides
	cmd := &cobra.Command{
		Use:   "benchmark",
		Short: "Execute a plan and record its results",
		Long: `Executes a plan: its benchmarks on its targets, in blocks of shuffled order.
Every trial is recorded in DIR/touchstone.db. At the end the command prints the
results on one screen and writes DIR/report.html. --summary full prints the whole report.

--plan selects a built-in plan:
` + builtinPlans() + `
-f reads a plan from a file, or from each file that matches a pattern. Files of
TouchStone (cri, oci, filter, runs, scale, output) work too. After two to twelve plans
DIR/index.html has the results of all of them. Without --targets, a plan that names no
targets measures native and each runtime on this machine, called without a daemon;
--managed and --cri add engines.

In --targets and in plans * matches every engine or runtime on this machine:
'containerd/*', '*/runc', '*/*'. all is '*/*' and native. If no daemon of an
engine can be reached, a private daemon is started for the run.

With --until decided a benchmark ends on a target when its differences from the baseline
are shown. The command looks at growing numbers of blocks from --runs to --max-blocks.
With --precision a comparison also ends when its ratio is known to ± PERCENTAGE.

The first ^C ends the trial under way, cleans up and shows the results so far. The
second ^C cleans up at once, within seconds. The third ^C ends the program without
clean-up; touchstone cleanup removes the rest. --resume continues an interrupted or
killed run.

Two runs at once would measure each other. If another run on this machine is under way, of
any user, the command fails. --wait waits for the end of the other run. --allow-concurrent
starts nevertheless, and the reports of both runs mention it. Runs in another network
namespace, for example in a container, are not seen. Fake targets ignore other runs.

A plan with a second machine (peer) needs the secret of touchstone peer there, in the
environment variable TOUCHSTONE_PEER_SECRET or in the file that --secret-file names.

The environment variable TOUCHSTONE_TRACE names a file that gets every call of an engine.`,
		Example: `  touchstone benchmark
  touchstone benchmark --plan standard
  touchstone benchmark -f plan.yaml -d out/
  touchstone benchmark -f "suites/*.yaml" -d out/
  touchstone benchmark --targets native,oci/runc,oci/crun --filter operations --runs 20
  touchstone benchmark --targets 'native,*/runc' --filter operations.container.lifecycle
  touchstone benchmark --targets 'containerd/*' --cri containerd=/run/containerd/containerd.sock
  touchstone benchmark --runtime mycrun=/opt/crun/bin/crun --targets oci/crun,oci/mycrun
  touchstone benchmark --pin workload=2-3,engines=1,touchstone=0
  touchstone benchmark --targets oci/runc,oci/crun --until decided --runs 10 --max-blocks 200
  touchstone benchmark --resume latest`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if f.Changed("resume") && opts.resume == "" {
				return usage(errors.New("--resume names no run: give an ID, the beginning of an ID, or latest"))
			}
			if f.Changed("plan") && opts.files != nil {
				return usage(errors.New("--plan and --file exclude each other; leave out one of them"))
			}
			if f.Changed("plan") && opts.builtin == "" {
				return usage(errors.New("--plan names no plan: the built-in plans are " + strings.Join(builtinNames(), ", ")))
			}
			keepGiven(f, "runs", &o.Blocks)
			keepGiven(f, "warmup", &o.Warmup)
			keepGiven(f, "precision", &o.Precision)
			keepGiven(f, "until", &o.Until)
			keepGiven(f, "max-blocks", &o.MaxBlocks)
			keepGiven(f, "budget", &o.Budget)
			keepGiven(f, "timeout", &o.Timeout)
			keepGiven(f, "seed", &o.Seed)
			keepGiven(f, "managed", &o.Managed)
			keepGiven(f, "drop-caches", &o.DropCaches)
			keepGiven(f, "monitor", &o.Monitor)
			keepGiven(f, "trace", &o.Trace)
			keepGiven(f, "trace-paths", &o.TracePaths)
			f.Visit(func(flag *pflag.Flag) {
				opts.changesPlan = opts.changesPlan || !slices.Contains([]string{"resume", "dir", "format", "summary", "secret-file", "wait", "allow-concurrent", "pprof"}, flag.Name)
			})
			return a.benchmark(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&opts.files, "file", "f", nil, "plan `FILE` or quoted pattern; several plans run one after the other")
	f.StringVar(&opts.builtin, "plan", "", "`NAME` of a built-in plan: "+strings.Join(builtinNames(), ", "))
	f.StringVar(&opts.resume, "resume", "", "continue an interrupted `RUN`: an ID, its beginning, or latest")
	f.StringSliceVarP(&o.Targets, "targets", "t", nil, "`TARGETS`, separated by commas, in place of the plan's")
	f.StringVar(&o.Baseline, "baseline", "", "`TARGET` that the others are compared with")
	f.StringSliceVar(&o.Filters, "filter", nil, "benchmarks by whole components of their `NAMES`, in place of the plan's")
	o.Blocks = f.IntP("runs", "n", 0, "`NUMBER` of measured blocks (repetitions)")
	o.Warmup = f.Int("warmup", 0, "`NUMBER` of warm-up blocks")
	o.Precision = f.String("precision", "", "add blocks until each median is known to ± `PERCENTAGE`, such as 2%")
	o.Until = f.String("until", "", "end each cell by a `RULE`: decided, once its differences are shown")
	o.MaxBlocks = f.Int("max-blocks", 0, "largest `NUMBER` of blocks with --until or --precision")
	o.Budget = f.Duration("budget", 0, "longest `TIME` for the whole run, such as 10m")
	o.Timeout = f.Duration("timeout", 0, "longest `TIME` for one trial, such as 2m")
	o.Seed = f.Uint64("seed", 0, "`NUMBER` that determines the order of trials")
	f.StringArrayVar(&o.Limits, "limit", nil, "`LIMITS` of containers, such as cpus=2,cpuset=0-1,memory=4GiB,pids=none")
	f.StringArrayVar(&o.Pin, "pin", nil, "`CPUS` for the parts of the run: workload=2-3,engines=1,touchstone=0")
	o.DropCaches = f.Bool("drop-caches", false, "drop the page cache before cold reads; paper plans do so as root")
	o.Trace = f.Int("trace", 0, "`NUMBER` of traced trials of each benchmark and target, after the timed ones")
	o.TracePaths = f.Bool("trace-paths", false, "record the paths of the files that traced trials open")
	o.Monitor = f.String("monitor", "", "sample `memory` and CPU time every 100ms, or as in memory=50ms")
	addRecorder(cmd, &opts)
	addSecretFile(cmd, &opts.secret)
	addEngineFlags(cmd, o)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed results", formatTable, formatJSON)
	addSummarySize(cmd, &opts.summary, summaryCompact)
	return cmd
}

// builtinNames are the values of --plan.
func builtinNames() []string {
	var names []string
	for _, b := range plan.Builtins() {
		names = append(names, b.Name)
	}
	return names
}

// builtinPlans lists the built-in plans for the help.
func builtinPlans() string {
	var text strings.Builder
	for _, b := range plan.Builtins() {
		fmt.Fprintf(&text, "  %-9s  %s\n", b.Name, b.Summary)
	}
	return text.String()
}

// keepGiven sets the value of a flag to nil unless the flag was given.
func keepGiven[T any](f *pflag.FlagSet, name string, value **T) {
	if !f.Changed(name) {
		*value = nil
	}
}

func (a *App) benchmark(ctx context.Context, opts benchmarkOptions) error {
	if opts.resume != "" {
		return a.resume(ctx, opts)
	}
	plans, err := a.readPlans(opts)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if err := checkOutput(opts.dir, p); err != nil {
			return err
		}
	}
	worst := error(nil)
	for _, p := range plans {
		err := a.execute(ctx, &opts, p, nil)
		var exit *exitError
		if err != nil && (ctx.Err() != nil || !errors.As(err, &exit) || exit.err != nil) {
			return err
		}
		if worst == nil {
			worst = err
		}
	}
	switch n := len(opts.executed); {
	case n > report.MostRuns:
		fmt.Fprintf(a.env.Stderr, "note: a page has at most %d runs and these are %d, so no page was written; name some of them with touchstone report RUN... -o html\n", report.MostRuns, n)
	case n > 1:
		err = a.writeIndex(ctx, opts.dir, filepath.Join(opts.dir, indexName), opts.executed)
	}
	return orExit(err, worst)
}

// indexName is the name of the page about several plans in an output folder, as TouchStone named it.
const indexName = "index.html"

// readPlans reads and checks all plans before the first is executed.
func (a *App) readPlans(opts benchmarkOptions) ([]plan.Plan, error) {
	runtimes, err := userRuntimes()
	if err != nil {
		return nil, err
	}
	var plans []plan.Plan
	var errs []error
	add := func(p plan.Plan, err error) {
		if err == nil {
			p, err = applied(p, runtimes, opts.overrides)
		}
		if err == nil {
			_, _, err = execution.Check(p)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		plans = append(plans, p)
	}
	switch {
	case opts.builtin != "":
		add(plan.Builtin(opts.builtin))
	case len(opts.files) == 0:
		add(plan.Quick(), nil)
	}
	files, err := expand(opts.files)
	if err != nil {
		return nil, usage(err)
	}
	for _, file := range files {
		add(plan.Load(file))
	}
	if len(errs) > 0 {
		return nil, usage(errors.Join(errs...))
	}
	return plans, nil
}

// expand replaces patterns by the files that match them, in the order of their names. The shell leaves a quoted pattern to the program. A
// file whose name looks like a pattern is itself.
func expand(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		if _, err := os.Lstat(name); err == nil || !strings.ContainsAny(name, "*?[") {
			files = append(files, name)
			continue
		}
		found, err := filepath.Glob(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--file: the pattern %q is malformed: close its bracket, or put a backslash before [", name)
		case found == nil:
			return nil, fmt.Errorf("--file: no file matches the pattern %q; name a file, or correct the pattern", name)
		}
		files = append(files, found...)
	}
	return files, nil
}

// resume resumes a run from the results file.
func (a *App) resume(ctx context.Context, opts benchmarkOptions) error {
	if opts.changesPlan {
		return usage(errors.New("--resume continues with the plan of the run; leave out the flags that would change it"))
	}
	run, err := a.load(ctx, opts.dir, opts.resume)
	if err != nil {
		return err
	}
	p, err := execution.ResumedPlan(run)
	if err == nil {
		err = checkOutput(opts.dir, p)
	}
	if err != nil {
		return err
	}
	return a.execute(ctx, &opts, p, &run)
}

// execute executes one plan, from the beginning or from the end of an earlier part of the run, and shows the results.
func (a *App) execute(ctx context.Context, opts *benchmarkOptions, p plan.Plan, predecessor *result.Run) error {
	run, err := (&recorder{app: a, opts: opts}).Execute(ctx, experiment.Request{Plan: p, Earlier: predecessor})
	if !run.Recorded {
		return err
	}
	opts.executed = append(opts.executed, run.ID)
	// The results so far are shown after an error too.
	return orExit(err, a.conclude(*opts, p, run.Run, run.Outcome))
}

// conclude shows the results, writes the report and returns the exit code as an error.
func (a *App) conclude(opts benchmarkOptions, p plan.Plan, run result.Run, outcome execution.Outcome) error {
	defer saveMemory(leastGarbage)()
	exported := p.Export != "" || p.TouchstoneOutput != ""
	m := report.New([]result.Run{run}, analysis.Options{Release: !exported})
	// An error in one output does not prevent the others.
	page := filepath.Join(opts.dir, "report.html")
	err := errors.Join(a.writeReport(reportOptions{dir: opts.dir, format: opts.format, summary: opts.summary, page: page}, m), a.writeReport(reportOptions{format: formatHTML, file: page}, m))
	if p.Export != "" {
		err = errors.Join(err, a.export(filepath.Join(opts.dir, p.Export), run))
	}
	if p.TouchstoneOutput != "" {
		err = errors.Join(err, a.appendOutput(filepath.Join(opts.dir, p.TouchstoneOutput), run))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "\nrun %s: report %s, results %s\n", run.ID, page, filepath.Join(opts.dir, databaseName))
	if len(outcome.Missing) > 0 && outcome.Available {
		fmt.Fprintf(a.env.Stderr, "asked for, and not measured: %s; the report has the reasons\n", strings.Join(outcome.Missing, ", "))
	}
	switch {
	case outcome.Interrupted:
		fmt.Fprintf(a.env.Stderr, "interrupted; continue with: touchstone benchmark --resume %s -d %s\n", run.ID, opts.dir)
		return &exitError{code: ExitInterrupted}
	case !outcome.Available:
		fmt.Fprintln(a.env.Stderr, "no target is available: see touchstone targets")
		return &exitError{code: ExitNoTarget}
	case outcome.Counts[result.Failed]+outcome.Counts[result.Timeout] > 0:
		fmt.Fprintf(a.env.Stderr, "of %d trials %d failed and %d timed out; the report lists them with the reasons\n",
			len(run.Trials), outcome.Counts[result.Failed], outcome.Counts[result.Timeout])
		return &exitError{code: ExitTrials}
	case len(outcome.Missing) > 0 && (opts.builtin == "" || opts.overrides.Targets != nil): // a built-in plan is for many machines
		return &exitError{code: ExitNoTarget}
	case !slices.ContainsFunc(run.Trials, func(t result.Trial) bool { return t.Status == result.OK }):
		fmt.Fprintln(a.env.Stderr, "nothing was measured; the report has the reasons")
		return &exitError{code: ExitFailure}
	}
	return nil
}
