package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// withStore opens the results file of a folder for reading.
func (a *App) withStore(ctx context.Context, dir string, do func(*store.Store) error) error {
	path := filepath.Join(dir, databaseName)
	db, err := store.OpenReadOnly(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist; create it with touchstone benchmark -d %s, or name another folder with -d", path, dir)
	}
	if err != nil {
		return recognized(dir, path, err)
	}
	return errors.Join(do(db), db.Close())
}

// recognized names another file in the place of the results, for the error of the store.
func recognized(dir, path string, err error) error {
	info, failed := os.Stat(dir)
	isFolder := failed == nil && info.IsDir()
	if failed == nil && !isFolder {
		path = dir
		err = fmt.Errorf("%s is not a folder; name the folder of the file touchstone.db with -d", dir)
	}
	if info, failed := os.Stat(path); failed != nil || !info.Mode().IsRegular() || isFolder && isDatabase(path) {
		return err
	}
	head, failed := beginning(path)
	if failed != nil {
		return err
	}
	if reason := textfile.Recognize(head, textfile.Database); reason != nil {
		return fmt.Errorf("%s is no results database: %w", path, reason)
	}
	return err
}

// load returns a run that can be resumed: an imported run is an error, and a file that another user can change.
func (a *App) load(ctx context.Context, dir, ref string) (run result.Run, err error) {
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		if err := store.CheckTrust(filepath.Join(dir, databaseName)); err != nil {
			return err
		}
		run, err = db.Run(ctx, ref)
		if err != nil {
			return err
		}
		isImport, err := db.Imported(ctx, run.ID)
		if err == nil && isImport {
			err = fmt.Errorf("run %s: %w", run.ID, store.ErrImported)
		}
		return err
	})
	return run, err
}

// mostGarbage is the size of the garbage beside whole runs, in percent of the memory in use. With Go's 100 % a report of 10⁶ samples takes half as much
// memory again, in the same time (make bench-million, with GOGC=100 and without).
const mostGarbage = 50

// leastGarbage is the same for the results of a run that ends: a benchmark needs most of its memory there. On a small board that counts, and a run takes much
// longer than its page. A report of 10⁶ samples takes 12 % more CPU time with it.
const leastGarbage = 25

// saveMemory bounds the garbage, in percent of the memory in use, unless the user has chosen a bound, and returns a function that restores the bound. No trial
// may run meanwhile.
func saveMemory(garbage int) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	percent := debug.SetGCPercent(garbage)
	return func() { debug.SetGCPercent(percent) }
}

// loadAll returns runs with their trials, each once. Without showEnv it leaves out the values of environment variables. It saves memory
// from now on, so no trial may follow in this process.
func (a *App) loadAll(ctx context.Context, dir string, refs []string, showEnv bool) (runs []result.Run, err error) {
	saveMemory(mostGarbage)
	defer a.slow("reading the results")()
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		names := map[string]string{}
		for _, ref := range refs {
			run, err := db.Run(ctx, ref)
			if err != nil {
				return err
			}
			if first, duplicate := names[run.ID]; duplicate {
				return usage(fmt.Errorf("run %s is named twice, by %q and %q; leave out one of them", run.ID, first, ref))
			}
			names[run.ID] = ref
			if !showEnv {
				run = archive.WithoutVariables(run)
			}
			runs = append(runs, run)
		}
		return nil
	})
	return runs, err
}

// userNames are the names of the user of this process.
func userNames() []string {
	return []string{os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("SUDO_USER")}
}

func addShowEnv(cmd *cobra.Command, show *bool) {
	cmd.Flags().BoolVar(show, "show-env", false, "show the values of environment variables in the plan")
}

// defaultDir is the folder of the results without --dir.
const defaultDir = "out"

func addDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "dir", "d", defaultDir, "`FOLDER` with the results")
}

// listResults completes a command that lists items of the results file. Items with the same heading follow each other; heading may be nil. Items without a
// heading have a blank line behind those with one.
func listResults[T any](
	a *App, cmd *cobra.Command, read func(*store.Store, context.Context) ([]T, error), header []string, heading func(T) string, row func(T) []string,
) *cobra.Command {
	var format format
	var dir string
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withStore(cmd.Context(), dir, func(db *store.Store) error {
			end := a.slow("reading the results")
			items, err := read(db, cmd.Context())
			end()
			if err != nil {
				return err
			}
			var rows [][]string
			for i, item := range items {
				if heading != nil && (i == 0 && heading(item) != "" || i > 0 && heading(item) != heading(items[i-1])) {
					rows = append(rows, []string{heading(item)})
				}
				rows = append(rows, row(item))
			}
			return a.print(format, items, header, rows)
		})
	}
	addFormat(cmd, &format)
	addDir(cmd, &dir)
	return cmd
}

func (a *App) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the recorded runs",
		Long: `Lists the runs in the results folder, the newest first. The state of a run is running,
complete, interrupted or killed. The runs of a fleet are together, below its ID.`,
	}
	header := []string{"RUN", "PLAN", "STATE", "STARTED", "OK", "FAILED", "SKIPPED", "TARGETS"}
	return listResults(a, cmd, runsByFleet, header, fleetHeading, func(r store.Summary) []string {
		bad := r.Trials[result.Failed] + r.Trials[result.Timeout]
		name := r.Name
		if r.Node != nil && r.Node.Name != "" {
			name += " on " + r.Node.Name
		}
		return []string{
			r.ID, name, string(r.State), shownTime(r.Started),
			fmt.Sprint(r.Trials[result.OK]), fmt.Sprint(bad), fmt.Sprint(r.Trials[result.Skipped]), strings.Join(r.Targets, " "),
		}
	})
}

// runsByFleet lists all runs, the newest first. The runs of a fleet are at the place of its newest run.
func runsByFleet(db *store.Store, ctx context.Context) ([]store.Summary, error) {
	runs, err := db.Runs(ctx)
	places := map[string]int{}
	for i, r := range runs {
		if _, ok := places[fleetHeading(r)]; !ok && r.Node != nil {
			places[fleetHeading(r)] = i
		}
	}
	order := make(map[string]int, len(runs))
	for i, r := range runs {
		order[r.ID] = i
		if r.Node != nil {
			order[r.ID] = places[fleetHeading(r)]
		}
	}
	slices.SortStableFunc(runs, func(x, y store.Summary) int { return order[x.ID] - order[y.ID] })
	return runs, err
}

// fleetHeading is the heading of the runs of a fleet. It is empty for the other runs.
func fleetHeading(r store.Summary) string {
	if r.Node == nil {
		return ""
	}
	return "fleet " + r.Node.Fleet
}

// shownTime spells a time in the user's zone. A run of TouchStone has none.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Local().Format(time.DateTime)
}

func (a *App) indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "List every benchmark with stored results",
		Long: `Lists every metric of every benchmark and target with results in the folder, over all
runs, with the number of trials. The index grows with every run of every plan.

--html-file writes one page with the results of the last run of each plan in the folder.`,
		Example: `  touchstone index -d out
  touchstone index -d out -x out/index.html`,
	}
	header := []string{"TARGET", "METRIC", "TRIALS", "RUNS", "LAST"}
	heading := func(e store.IndexEntry) string { return name(e.Cell) }
	cmd = listResults(a, cmd, (*store.Store).Index, header, heading, func(e store.IndexEntry) []string {
		return []string{e.Target, e.Metric, fmt.Sprint(e.Trials), fmt.Sprint(len(e.Runs)), shownTime(e.Last)}
	})
	list := cmd.RunE
	var page string
	cmd.Flags().StringVarP(&page, "html-file", "x", "", "write the page to this `FILE` in place of the list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if page == "" {
			return list(cmd, args)
		}
		return a.writeIndex(cmd.Context(), cmd.Flag("dir").Value.String(), page, nil)
	}
	return cmd
}

func addFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "output-file", "O", "", "`FILE` to write, in place of standard output")
}

// writeTo writes a text file as a whole or not at all, through a cleaner. An empty name is standard output.
func (a *App) writeTo(file string, write func(io.Writer) error) error {
	if file == "" {
		return write(a.env.Stdout)
	}
	defer a.slow("writing " + file)()
	return replaceFile(file, func(w io.Writer) error { return write(clean(w)) })
}

// replaceFile writes a file as a whole or not at all. Results, reports and images may be confidential, so only the user can read the file.
func replaceFile(file string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".touchstone-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	err = errors.Join(write(f), f.Close()) // with mode 0600
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(f.Name()))
	}
	return nil
}

// writeBytes writes content to a file, see writeTo.
func (a *App) writeBytes(file string, content []byte) error {
	return a.writeTo(file, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func (a *App) reportCommand() *cobra.Command {
	var opts reportOptions
	cmd := &cobra.Command{
		Use:   "report [RUN...|FLEET]",
		Short: "Show the results of one run, of several runs, or of a fleet",
		Long: fmt.Sprintf(`Shows the results of a run: the scorecard, medians with intervals, ratios to the
baseline with verdicts, warnings, and trials without a number. The report of a run is
always the same. Name a run by its ID, the beginning of its ID, or "latest", which is
the default.

With several runs, up to %d, the report covers all of them: the ratio to the
baseline in each run, for each benchmark and target, and the differences between
the runs and their machines. It shows absolute values of different machines and
compares them only with --across-machines, as ratios to the values of the first run.

A fleet is the runs of a cluster run, one for each node. Name it by its ID or the
beginning of its ID. Its report has the ratio to the baseline over all nodes, the spread
between nodes, and nodes that differ from their kind. "latest" is the fleet if the
newest run belongs to one. --site writes its page and a page for each node.

If the CPU of a machine is emulated, the report says so at the top. Values of speed then have
the word "emulated" in the place of a verdict: times, rates, CPU time and energy. Verdicts about
memory, numbers of things and limits hold. --emulated-verdicts gives all verdicts.

Differences that are known to be smaller than --min-effect have the verdict "too small
to matter". Without the flag every shown difference matters.

Values of environment variables in the plan are left out, also where a program printed
them, unless you give --show-env.`, report.MostRuns),
		Example: `  touchstone report
  touchstone report 20261120 -o html -O report.html
  touchstone report 20261120 20261121 latest -o html -O machines.html
  touchstone report latest --site pages`,
		Args: atMost(report.MostRuns),
		RunE: func(cmd *cobra.Command, refs []string) error {
			if opts.across && len(refs) < 2 {
				return usage(errors.New("--across-machines compares runs: name at least two"))
			}
			var minimum plan.Share
			if cmd.Flags().Changed("min-effect") {
				var err error
				if minimum, err = plan.ParseShare("--min-effect", opts.minEffect); err != nil {
					return usage(err)
				}
			}
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			options := analysis.Options{AcrossMachines: opts.across, EmulatedVerdicts: opts.emulated, MinEffect: float64(minimum), Release: true}
			fleet, err := a.fleetRuns(cmd.Context(), opts.dir, refs)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("summary") && (len(refs) > 1 || fleet != nil || opts.format != formatTable) {
				return usage(errors.New("--summary is for the table of one run: name one run, and leave out --format"))
			}
			if fleet != nil {
				return a.reportFleet(cmd.Context(), opts, options, fleet)
			}
			if opts.site != "" {
				return usage(errors.New("--site writes the pages of a fleet: name a fleet, or write one page with -o html -O FILE"))
			}
			runs, err := a.loadAll(cmd.Context(), opts.dir, refs, opts.showEnv)
			if err != nil {
				return err
			}
			if err := rebase(runs, opts.baseline); err != nil {
				return err
			}
			opts.refs = refs
			end := a.slow("analysing the results")
			r := report.New(runs, options)
			end()
			return a.writeReport(opts, r)
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addShowEnv(cmd, &opts.showEnv)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats()...)
	addSummarySize(cmd, &opts.summary, summaryFull)
	addBaseline(cmd, &opts.baseline)
	cmd.Flags().BoolVar(&opts.across, "across-machines", false, "compare absolute values too, with the values of the first run")
	cmd.Flags().StringVar(&opts.site, "site", "", "`FOLDER` for the page of a fleet, and a page for each node")
	cmd.Flags().StringVar(&opts.minEffect, "min-effect", "", "`PERCENTAGE` up to which a difference does not matter, such as 3%")
	addEmulated(cmd, &opts.emulated)
	return cmd
}

type reportOptions struct {
	dir, file string
	format    format
	// summary is the size of the table format. page is the file of the page, which a summary names.
	summary format
	page    string
	refs    []string // the runs as the user named them
	// baseline is the target that others are compared with; empty for the baseline of the run.
	baseline string
	// minEffect is the margin of differences that do not matter, as the user wrote it.
	minEffect string
	// across is --across-machines, emulated is --emulated-verdicts.
	across, emulated, showEnv bool
	// site is the folder for the pages of a fleet.
	site string
}

func (a *App) writeReport(opts reportOptions, r report.Report) error {
	return a.writeTo(opts.file, func(w io.Writer) error {
		switch {
		case opts.format != formatTable || opts.summary == summaryFull:
			return a.writeDocument(w, opts.format, opts.file, runs.Document(&r))
		case opts.summary == summaryNone:
			return nil
		}
		return a.writeSummary(w, opts, &r)
	})
}
