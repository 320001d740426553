package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trust"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

type reproduceOptions struct {
	benchmarkOptions
	paper        paper.Paper
	quick        bool
	inconclusive inconclusive
	table        string
	targets      []string
	fake         bool
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
	addRecorder(cmd, &opts.benchmarkOptions)
	f.BoolVar(&opts.fake, "fake", false, "replace each target by a fake one")
	_ = f.MarkHidden("fake")
	addEngineFlags(cmd, &opts.overrides)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed comparison", documentFormats()...)
	addInconclusive(cmd, &opts.inconclusive)
	_ = cmd.RegisterFlagCompletionFunc("table", completeTable)
	return cmd
}

// reproduce measures what is missing, and shows the comparison.
func (a *App) reproduce(ctx context.Context, opts reproduceOptions) error {
	s, err := newStudy(&opts)
	if err == nil {
		err = trustResults(opts.dir)
	}
	if err != nil {
		return err
	}
	links := []string{}
	s.Executor, s.Find, s.Found = &recorder{a, &opts.benchmarkOptions}, a.newest(opts.dir), a.showFound
	s.Publish = func(r report.Report) error {
		link := "report-" + r.Runs[0].Name + ".html"
		links = append(links, link)
		return a.writeReport(reportOptions{format: formatHTML, file: filepath.Join(opts.dir, link)}, r)
	}
	if err := s.Run(ctx); err != nil {
		return err
	}
	comparison := s.Compare()
	page := filepath.Join(opts.dir, "reproduction-"+s.Paper.Name+s.Suffix()+".html")
	err = errors.Join(
		a.writeReproduction(opts.format, "", comparison, links, opts.inconclusive),
		a.writeReproduction(formatHTML, page, comparison, links, ""),
	)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "\n%s: page %s, results %s\n", comparison.Summary(), page, filepath.Join(opts.dir, databaseName))
	return a.concludeStudy(s)
}

// newest returns a function that finds the newest run of a plan in a folder.
func (a *App) newest(dir string) func(context.Context, plan.Plan) (*result.Run, bool, error) {
	return func(ctx context.Context, p plan.Plan) (run *result.Run, isImport bool, err error) {
		file := filepath.Join(dir, databaseName)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return nil, false, nil
		}
		err = a.withStore(ctx, dir, func(db *store.Store) error {
			if err := store.CheckTrust(file); err != nil {
				return err
			}
			run, isImport, err = experiment.Newest(ctx, db, p)
			return err
		})
		return run, isImport, err
	}
}

// showFound shows that a run is shown again or continued.
func (a *App) showFound(run result.Run) {
	if run.State == result.Complete {
		fmt.Fprintf(a.env.Stderr, "run %s of %s is complete and shown again; -d with another folder measures anew\n", run.ID, shownTime(run.Started))
		return
	}
	fmt.Fprintf(a.env.Stderr, "continuing run %s of %s\n", run.ID, shownTime(run.Started))
}

// concludeStudy returns the exit code as an error.
func (a *App) concludeStudy(s *experiment.Study) error {
	available := slices.ContainsFunc(s.Runs, func(r reproduce.Run) bool {
		return slices.ContainsFunc(r.Run.Targets, func(t result.Target) bool { return t.Unavailable == "" })
	})
	switch {
	case s.End == experiment.Interrupted:
		fmt.Fprintln(a.env.Stderr, "interrupted; the same command continues")
		return &exitError{code: ExitInterrupted}
	case !available:
		fmt.Fprintln(a.env.Stderr, "no target of the study is available: see touchstone targets")
		return &exitError{code: ExitNoTarget}
	case s.Failed > 0:
		fmt.Fprintf(a.env.Stderr, "%s failed or timed out; the reports of the runs list them with the reasons\n", wording.Counted(s.Failed, "trial"))
		return &exitError{code: ExitTrials}
	}
	return nil
}

// newStudy returns the study that the flags describe.
func newStudy(opts *reproduceOptions) (*experiment.Study, error) {
	runtimes, err := userRuntimes()
	if err != nil {
		return nil, err
	}
	study := opts.paper
	plans, err := plan.Study(study.Name, opts.quick)
	if err == nil && opts.fake {
		study, plans, err = withFakes(study, plans)
	}
	if err != nil {
		return nil, err
	}
	for i := range plans {
		if plans[i], err = applied(plans[i], runtimes, opts.overrides); err != nil {
			return nil, usage(err)
		}
	}
	s, err := experiment.NewStudy(study, plans, opts.table, opts.targets)
	if err == nil {
		s.Quick = opts.quick
	}
	return s, err
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

func (a *App) writeReproduction(f format, file string, r *reproduce.Reproduction, links []string, i inconclusive) error {
	d := i.settle(study.Document(r, links))
	return a.writeTo(file, func(w io.Writer) error { return a.writeDocument(w, f, file, d) })
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
