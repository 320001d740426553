package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/counts"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

type countsOptions struct {
	benchmarkOptions
	target string
	runs   []string
	// traces is the number of traces of a recording.
	traces       int
	output       string
	inconclusive inconclusive
}

func (a *App) countsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "counts",
		Short: "Keep the expected numbers of system calls of a runtime in a file",
		Long: `Keeps the numbers of system calls of a runtime in a text file, by step and component, with
one count in a line. The file belongs into the repository of the runtime: a change of a
count is then a line of a diff that a reviewer reads.

A count that varies from trace to trace is marked, and is not compared.`,
		Example: `  touchstone counts record counts.txt --target oci/runc=./runc
  touchstone counts check counts.txt --target oci/runc=./runc`,
	}
	addVerbs(cmd, a.countsRecordCommand(), a.countsCheckCommand())
	return cmd
}

// addCounts adds the flags of both verbs.
func addCounts(cmd *cobra.Command, opts *countsOptions) {
	f := cmd.Flags()
	f.StringArrayVar(&opts.runs, "run", nil, "use the traces of recorded `RUNS`, as touchstone compare takes them, and measure nothing")
	addRecorder(cmd, &opts.benchmarkOptions)
	addEngineFlags(cmd, &opts.overrides)
}

func (a *App) countsRecordCommand() *cobra.Command {
	var opts countsOptions
	cmd := &cobra.Command{
		Use:   "record FILE",
		Short: "Write the numbers of system calls of a runtime to a file",
		Long: fmt.Sprintf(`Traces a target, and writes the number of each system call to a file, by step and
component. The header has the versions of the runtime and of Touchstone, the kernel and the
architecture. An existing file is replaced. The benchmark is %s,
unless --filter names others.`, abBenchmark),
		Example: `  touchstone counts record counts.txt --target oci/runc
  touchstone counts record counts.txt --target oci/crun=./crun --filter operations`,
		Args: oneFile("record"),
		RunE: func(cmd *cobra.Command, args []string) error {
			keepGiven(cmd.Flags(), "managed", &opts.overrides.Managed)
			if opts.traces < 1 || opts.traces > plan.MaxBlocks {
				return usage(fmt.Errorf("--trace %d: give 1 to %d traces", opts.traces, plan.MaxBlocks))
			}
			return a.recordCounts(cmd.Context(), opts, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.target, "target", "", "the `BUILD`, as TARGET=PATH or TARGET")
	f.StringSliceVar(&opts.overrides.Filters, "filter", []string{abBenchmark}, "benchmarks by whole components of their `NAMES`")
	f.IntVar(&opts.traces, "trace", counts.ShownBy, "`NUMBER` of traces; more of them show rare variation")
	addCounts(cmd, &opts)
	return cmd
}

func (a *App) countsCheckCommand() *cobra.Command {
	var opts countsOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Compare the numbers of system calls of a runtime with a file",
		Long: `Traces the target and the benchmarks of a file that touchstone counts record wrote, and
prints the lines that changed. Three traces show equal counts. A difference must hold in
ten further traces.

The exit code is 4 if a stable count differs in either direction, 6 if the traces cannot
decide, and 0 without a difference. Another kernel or architecture is a warning: both
change counts.`,
		Example: `  touchstone counts check counts.txt
  touchstone counts check counts.txt --target oci/runc=./runc -o junit -O junit.xml`,
		Args: oneFile("check"),
		RunE: func(cmd *cobra.Command, args []string) error {
			keepGiven(cmd.Flags(), "managed", &opts.overrides.Managed)
			return a.checkCounts(cmd.Context(), opts, args[0])
		},
	}
	cmd.Flags().StringVar(&opts.target, "target", "", "the `BUILD`, as TARGET=PATH or TARGET, in place of the target of the file")
	addCounts(cmd, &opts)
	addFile(cmd, &opts.output)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats()...)
	addInconclusive(cmd, &opts.inconclusive)
	return cmd
}

// oneFile refuses other numbers of arguments than one.
func oneFile(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: one file of counts is needed, and %d are given", verb, len(args))
		}
		return nil
	}
}

// tally returns the series for a target. The benchmarks are filters or whole items.
func (opts *countsOptions) tally(a *App, items []plan.Item) (*experiment.Tally, error) {
	build, err := parseBuild("--target", opts.target)
	if err != nil {
		return nil, err
	}
	runtimes, err := userRuntimes()
	if err != nil {
		return nil, err
	}
	p := plan.Quick()
	p.Baseline, p.Targets = target.Target{}, nil
	if p, err = applied(p, runtimes, opts.overrides); err != nil {
		return nil, usage(err)
	}
	if items != nil {
		p.Benchmarks = items
	}
	t, err := experiment.NewTally(p, build)
	if err == nil {
		t.Executor, t.Line = &recorder{a, &opts.benchmarkOptions}, a.line
	}
	return t, err
}

// recordedRuns reads the runs of --run.
func (opts *countsOptions) recordedRuns(ctx context.Context, a *App) ([]result.Run, error) {
	r := runReader{app: a, ctx: ctx, dir: opts.dir}
	side, err := r.side(opts.runs)
	return side.Runs, err
}

// recordCounts writes a file.
func (a *App) recordCounts(ctx context.Context, opts countsOptions, file string) error {
	name := opts.target
	var runs []result.Run
	if opts.runs != nil {
		build, err := parseBuild("--target", opts.target)
		if err != nil {
			return err
		}
		name = build.Target.String()
		if runs, err = opts.recordedRuns(ctx, a); err != nil {
			return err
		}
	} else {
		t, err := opts.tally(a, nil)
		if err != nil {
			return err
		}
		if err := t.Trace(ctx, opts.traces); err != nil {
			return err
		}
		if t.End == experiment.Interrupted {
			return &exitError{ExitInterrupted, errors.New("interrupted; no counts are recorded")}
		}
		name, runs = t.Target, t.Runs
	}
	e := counts.Expect(counts.OriginOf(&runs[0], name), counts.Collect(runs))
	if len(e.Benchmarks) == 0 {
		return usage(fmt.Errorf("record counts: the runs have no trace of %s with counts; record them with touchstone benchmark --trace %d", name, counts.ShownBy))
	}
	if err := replaceFile(file, e.Write); err != nil {
		return err
	}
	stable, varying := e.Sizes()
	fmt.Fprintf(a.env.Stderr, "%s has %d counts of %s, and %d that vary\n", file, stable, name, varying)
	return nil
}

// checkCounts compares with a file.
func (a *App) checkCounts(ctx context.Context, opts countsOptions, file string) error {
	text, err := readFile(file, counts.MaxFile)
	if err != nil {
		return usage(fmt.Errorf("read counts: %w", err))
	}
	e, err := counts.ReadExpected(file, text)
	if err != nil {
		return usage(err)
	}
	if opts.target == "" {
		opts.target = e.Target
	}
	var d *counts.Deviation
	if opts.runs != nil {
		build, err := parseBuild("--target", opts.target)
		if err != nil {
			return err
		}
		runs, err := opts.recordedRuns(ctx, a)
		if err != nil {
			return err
		}
		d = e.Compare(file, counts.OriginOf(&runs[0], build.Target.String()), counts.Collect(runs))
	} else {
		var items []plan.Item
		for i := range e.Benchmarks {
			item, err := itemOf(e.Benchmarks[i].Key)
			if err != nil {
				return usage(fmt.Errorf("%s: %w", file, err))
			}
			items = append(items, item)
		}
		t, err := opts.tally(a, items)
		if err != nil {
			return err
		}
		if d, err = t.Check(ctx, file, e); err != nil {
			return err
		}
		if d == nil {
			return &exitError{ExitInterrupted, errors.New("interrupted; the counts are not compared")}
		}
	}
	document := opts.inconclusive.settle(answer.Document(d))
	if err := a.writeTo(opts.output, func(w io.Writer) error { return a.writeDocument(w, opts.format, opts.output, document) }); err != nil {
		return err
	}
	if code := answerCode(d.Answer()); code != ExitOK {
		return &exitError{code: code}
	}
	return nil
}

// answerCode is the exit code of an answer.
func answerCode(a stats.Answer) int {
	return map[stats.Answer]int{stats.Worse: ExitWorse, stats.Inconclusive: ExitInconclusive}[a]
}

// itemOf returns the benchmark of a file for a plan.
func itemOf(key analysis.Key) (plan.Item, error) {
	item := plan.Item{Name: key.Name, Params: bench.Params{}}
	for field := range strings.FieldsSeq(key.Params) {
		name, value, ok := strings.Cut(field, "=")
		if !ok || strings.HasPrefix(name, "limits.") {
			return item, fmt.Errorf("the parameter %q of %s is not supported here; give runs with --run", field, key.Name)
		}
		item.Params[name] = value
	}
	return item, nil
}
