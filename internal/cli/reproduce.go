package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

type reproduceOptions struct {
	benchmarkOptions
	paper   paper.Paper
	quick   bool
	table   string
	targets []string
	fake    bool
}

func (a *App) reproduceCommand() *cobra.Command {
	var opts reproduceOptions
	cmd := &cobra.Command{
		Use:   "reproduce PAPER",
		Short: "Repeat a study on this machine, and see which of its claims hold here",
		Long: `Executes the plan of a study and compares the results with its claims and tables.
The studies are ` + strings.Join(paper.Names(), ", ") + `; touchstone paper shows their numbers.

Each claim has a verdict: agrees, disagrees, cannot tell, or not measured with the
reason. Each cell of a table has the printed value, the median here, and the ratio
to the study's reference: its own, then that of this machine with a 95 % interval.
docs/reproduce.md explains them. The command prints the comparison and writes
FOLDER/reproduction-PAPER.html, with links to the ordinary reports of its runs.

The plans measure what this machine has. Missing engines and runtimes are listed
with the reason. --quick has short parameters, and ends in under 20 (espe) or 40
minutes. Without it a study takes many hours. --table measures the benchmarks of one
table only, and --targets some of the study's targets: 'containerd/*'.

A second call with the same folder and flags continues an interrupted or killed run,
and shows complete runs again without measuring. Another folder measures anew.`,
		Example: `  touchstone reproduce espe --quick
  touchstone reproduce nishimura --quick --table 3 -d nishimura/
  touchstone reproduce wang --targets native,docker/runc`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("name one study: %s", strings.Join(paper.Names(), ", ")))
			}
			return nil
		},
		ValidArgsFunction: completePaper,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			keepGiven(f, "managed", &opts.overrides.Managed)
			if opts.wait && opts.beside {
				return usage(errors.New("--wait and --allow-concurrent exclude each other; leave out one of them"))
			}
			p, err := loadPaper(args[0])
			if err != nil {
				return err
			}
			opts.paper = p
			if f.Changed("table") {
				found, err := findTable(p, opts.table)
				if err != nil {
					return err
				}
				opts.table = found.Name
			}
			return a.reproduce(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&opts.quick, "quick", false, "short parameters and fewer repetitions")
	f.StringVar(&opts.table, "table", "", "measure and show one `TABLE` of the study, such as 1 or 'text 5.8'")
	f.StringSliceVarP(&opts.targets, "targets", "t", nil, "`TARGETS` of the study, separated by commas; * matches a part of a name")
	f.StringVarP(&opts.dir, "dir", "d", "out", "output `FOLDER`")
	f.BoolVar(&opts.wait, "wait", false, "wait for the end of another run on this machine")
	f.BoolVar(&opts.beside, "allow-concurrent", false, "start beside another run on this machine; the reports mention it")
	f.BoolVar(&opts.fake, "fake", false, "replace each target by a fake one")
	_ = f.MarkHidden("fake")
	addEngineFlags(cmd, &opts.overrides)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed comparison", append(documentFormats(formatJUnit), formatHTML)...)
	_ = cmd.RegisterFlagCompletionFunc("table", completeTable)
	return cmd
}

// reproduce measures what is missing, and shows the comparison.
func (a *App) reproduce(ctx context.Context, opts reproduceOptions) error {
	plans, err := studyPlans(&opts)
	if err == nil {
		err = trustResults(opts.dir)
	}
	if err != nil {
		return err
	}
	var runs []reproduce.Run
	var work []report.Key
	links := []string{}
	origin := origins{}
	outcomes := outcomes{}
	for _, p := range plans {
		work = append(work, p.keys...)
	}
	for _, p := range plans {
		if outcomes.interrupted {
			break
		}
		run, imported, err := a.study(ctx, opts, p.Plan, &outcomes)
		if err == nil {
			err = origin.add(run, imported)
		}
		if err != nil {
			return err
		}
		m := report.New([]result.Run{run}, report.Options{})
		link := "report-" + p.Name + ".html"
		if err := a.writeReport(reportOptions{format: formatHTML, file: filepath.Join(opts.dir, link)}, m); err != nil {
			return err
		}
		runs, links = append(runs, reproduce.Run{Run: run, Report: m}), append(links, link)
	}
	compared := reproduce.New(opts.paper, runs, reproduce.Options{Work: work, Table: opts.table, Quick: opts.quick, Elsewhere: origin.elsewhere()})
	page := filepath.Join(opts.dir, "reproduction-"+opts.paper.Name+suffixOf(opts.table)+".html")
	err = errors.Join(
		a.writeReproduction(opts.format, "", compared, links),
		a.writeReproduction(formatHTML, page, compared, links),
	)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "\n%s: page %s, results %s\n", compared.Summary(), page, filepath.Join(opts.dir, databaseName))
	return a.concludeStudy(outcomes, runs)
}

// concludeStudy returns the exit code as an error.
func (a *App) concludeStudy(o outcomes, runs []reproduce.Run) error {
	available := slices.ContainsFunc(runs, func(r reproduce.Run) bool {
		return slices.ContainsFunc(r.Run.Targets, func(t result.Target) bool { return t.Unavailable == "" })
	})
	switch {
	case o.interrupted:
		fmt.Fprintln(a.env.Stderr, "interrupted; the same command continues")
		return &exitError{code: ExitInterrupted}
	case !available:
		fmt.Fprintln(a.env.Stderr, "no target of the study is available: see touchstone targets")
		return &exitError{code: ExitNoTarget}
	case o.failed > 0:
		fmt.Fprintf(a.env.Stderr, "%d trials failed or timed out; the reports of the runs list them with the reasons\n", o.failed)
		return &exitError{code: ExitTrials}
	}
	return nil
}

// outcomes are how the runs of a study ended.
type outcomes struct {
	interrupted bool
	failed      int
}

// studyPlan is a plan of a study, restricted to the chosen benchmarks and targets.
type studyPlan struct {
	plan.Plan
	keys []report.Key
}

// studyPlans reads, restricts and checks the plans of a study before the first is executed.
func studyPlans(opts *reproduceOptions) ([]studyPlan, error) {
	runtimes, err := userRuntimes()
	if err != nil {
		return nil, err
	}
	all, err := plan.Study(opts.paper.Name, opts.quick)
	if err != nil {
		return nil, err
	}
	if opts.fake {
		if opts.paper, all, err = withFakes(opts.paper, all); err != nil {
			return nil, err
		}
	}
	matched := map[string]bool{}
	var known []string
	var plans []studyPlan
	for _, p := range all {
		p, err := applied(p, runtimes, opts.overrides)
		if err != nil {
			return nil, usage(err)
		}
		work, _, err := execution.Check(p)
		if err != nil {
			return nil, usage(err)
		}
		only := studyPlan{}
		work = slices.DeleteFunc(work, func(w plan.Work) bool {
			return opts.table != "" && !reproduce.Needs(opts.paper, opts.table, report.Key{Name: w.Benchmark.Name, Params: w.Key()}, "")
		})
		var targets []target.Target
		for _, pattern := range p.Targets {
			t, _ := pattern.Exact()
			known = append(known, t.String())
			chosen, err := matches(opts.targets, t.String(), matched)
			if err != nil {
				return nil, err
			}
			needed := opts.table == "" || slices.ContainsFunc(work, func(w plan.Work) bool {
				return reproduce.Needs(opts.paper, opts.table, report.Key{Name: w.Benchmark.Name, Params: w.Key()}, t.String())
			})
			if chosen && needed {
				targets = append(targets, t)
			}
		}
		if len(work) == 0 || len(targets) == 0 {
			continue
		}
		for _, w := range work {
			only.keys = append(only.keys, report.Key{Name: w.Benchmark.Name, Params: w.Key()})
		}
		only.Plan = p.Only(targets, work)
		only.Name += suffixOf(opts.table)
		plans = append(plans, only)
	}
	for _, pattern := range opts.targets {
		if !matched[pattern] {
			return nil, usage(fmt.Errorf("the study has no target %q; there are %s", pattern, strings.Join(known, ", ")))
		}
	}
	if plans == nil {
		return nil, &exitError{ExitNoTarget, fmt.Errorf("nothing of %s can be measured: %s", opts.table, reproduce.WhyNothing(opts.paper, opts.table))}
	}
	return plans, nil
}

// suffixOf is the end of the name of a run or a page of one table: "-table-1".
func suffixOf(table string) string {
	if table == "" {
		return ""
	}
	return "-" + strings.NewReplacer(" ", "-", "/", "-").Replace(table)
}

// matches reports whether a target is chosen, and marks the patterns that choose it.
func matches(patterns []string, name string, matched map[string]bool) (bool, error) {
	chosen := patterns == nil
	for _, pattern := range patterns {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return false, usage(fmt.Errorf("--targets: %q is no pattern: %w", pattern, err))
		}
		matched[pattern] = matched[pattern] || ok
		chosen = chosen || ok
	}
	return chosen, nil
}

// trustResults refuses a folder, or results in it, that another user can change: the command executes plans of the results, and writes pages
// beside them.
func trustResults(dir string) error {
	if _, err := trust.Directory(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("use the folder %s: %w, or use another folder with -d", dir, err)
	}
	if err := store.CheckTrust(filepath.Join(dir, databaseName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// origins are the machines of the runs of a study.
type origins struct {
	here    []string // the runs of this machine
	foreign []string // the names of other machines
	runs    []string // the imported runs
}

// add refuses runs of several machines: their values belong to no common place.
func (o *origins) add(run result.Run, imported bool) error {
	if !imported {
		o.here = append(o.here, run.ID)
	} else {
		o.runs = append(o.runs, run.ID)
		if name := cmp.Or(run.Host.Hostname, "another machine"); !slices.Contains(o.foreign, name) {
			o.foreign = append(o.foreign, name)
		}
	}
	if len(o.here) > 0 && len(o.runs) > 0 {
		return fmt.Errorf("run %s was measured on this machine and run %s was imported; use another folder with -d for one of them", o.here[0], o.runs[0])
	}
	return nil
}

func (o *origins) elsewhere() string { return strings.Join(o.foreign, " and ") }

// study returns the run of a plan: the recorded one if it is complete, else it starts or continues one.
func (a *App) study(ctx context.Context, opts reproduceOptions, p plan.Plan, o *outcomes) (_ result.Run, imported bool, err error) {
	run, imported, err := a.recorded(ctx, opts.dir, p)
	if err != nil {
		return result.Run{}, false, err
	}
	var earlier *result.Run
	switch {
	case run == nil:
	case run.State == result.Complete:
		fmt.Fprintf(a.env.Stderr, "run %s of %s is complete and shown again; -d with another folder measures anew\n", run.ID, shownTime(run.Started))
		return withoutVariables(*run), imported, nil
	default:
		if p, err = execution.ResumedPlan(*run); err != nil {
			return result.Run{}, false, err
		}
		fmt.Fprintf(a.env.Stderr, "continuing run %s of %s\n", run.ID, shownTime(run.Started))
		resumed, err := a.load(ctx, opts.dir, run.ID)
		if err != nil {
			return result.Run{}, false, err
		}
		earlier = &resumed
	}
	var measured result.Run
	opts.concluded = func(run result.Run, outcome execution.Outcome) error {
		measured, o.interrupted = run, outcome.Interrupted
		o.failed += outcome.Counts[result.Failed] + outcome.Counts[result.Timeout]
		return nil
	}
	err = a.execute(ctx, &opts.benchmarkOptions, p, earlier)
	return measured, false, err
}

// recorded is the newest run of a plan in the folder, nil without one. A run of the same name with another plan does not count.
func (a *App) recorded(ctx context.Context, dir string, p plan.Plan) (found *result.Run, imported bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, databaseName)); errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		runs, err := db.Runs(ctx)
		if err != nil {
			return err
		}
		for _, s := range runs {
			if s.Name != p.Name {
				continue
			}
			run, err := db.Run(ctx, s.ID)
			if err != nil {
				return err
			}
			of, err := plan.Parse("run "+run.ID, []byte(run.Plan))
			if err != nil || !p.Begins(of) {
				continue // of another version or with other flags
			}
			run.State = s.State
			found = &run
			imported, err = db.Imported(ctx, run.ID)
			return err
		}
		return nil
	})
	return found, imported, err
}

func (a *App) writeReproduction(f format, file string, r *reproduce.Reproduction, links []string) error {
	return a.writeTo(file, func(w io.Writer) error {
		switch f {
		case formatJSON:
			return reportjson.WriteReproduction(jsonWriter(w), r)
		case formatHTML:
			return html.WriteReproduction(w, r, links)
		default:
			return a.writeDocument(w, f, file, study.Document(r))
		}
	})
}

// withFakes replaces the targets of a study and its plans by fake ones of the same names.
func withFakes(p paper.Paper, plans []plan.Plan) (paper.Paper, []plan.Plan, error) {
	fakeOf := func(name string) string {
		return "fake/" + strings.NewReplacer("/", "-", "@", "-", "=", "-", ",", "-").Replace(name)
	}
	for i := range plans {
		var targets []string
		for _, t := range plans[i].Targets {
			targets = append(targets, fakeOf(t.String()))
		}
		baseline, err := target.Parse(fakeOf(plans[i].Baseline.String()))
		if err != nil {
			return p, nil, err
		}
		plans[i].Baseline = baseline
		if plans[i], err = plans[i].Apply(plan.Overrides{Targets: targets}); err != nil {
			return p, nil, err
		}
	}
	return p.WithTargets(fakeOf), plans, nil
}
