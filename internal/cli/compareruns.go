package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// formatJUnit is the format of test results for servers of continuous integration.
const formatJUnit format = "junit"

// stepSummary is the variable with the file for the summary of a step of GitHub Actions.
const stepSummary = "GITHUB_STEP_SUMMARY"

type compareOptions struct {
	dir, file      string
	format         format
	a, b           []string
	across         bool
	allow          []string
	emulated       bool
	failOn         []string
	gates          string
	writeToSummary bool
	inconclusive   inconclusive
}

func (a *App) compareCommand() *cobra.Command {
	var opts compareOptions
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two sides of one or several runs, and fail on a regression",
		Long: `Compares side B with side A. A side is one or several runs, separated by commas:

  RUN             a run in the folder: an ID, the beginning of an ID, or latest
  NAME            a stored baseline in the folder, also as baseline:NAME
  FILE, FOLDER    all runs of a database, of an export, or of a folder with results
  FILE:RUN        one run of a file

--a and --b add runs to a side in place of the arguments, and can be repeated.

Give several runs a side, at least 3. The runs are the observations: one run a side
shows nothing of the variation between runs, so it has no verdict "slower".

Metrics are matched by benchmark, parameters and target. If the runs differ in machine,
kernel, settings, versions or parameters, the command names the differences and
refuses. --across-machines and --allow-differences allow them.

--fail-on sets a gate: B must not be worse than A by more than the margin. The form is
WORD:MARGIN or BENCHMARK:METRIC=WORD:MARGIN. The word is the one of reports:
slower (times and rates), more or less (amounts), or worse (every metric). If several
gates select a metric, the one with the most exact selection counts. Gates with equal
selections and different margins are an error. --gates reads gates from a file.

A gate by counts is counts:NAMES>NUMBER or counts:NAMES>=NUMBER: no count of the names may
exceed the count of A by the number. A name is a system call, a group (execs, forks,
mounts, opens, syncs, threads), or all for every call. The runs need traces: record
them with --trace 10. A count that varies from trace to trace decides nothing.

The exit code is 4 if a metric is worse than its margin, 6 if none is and a gate is
inconclusive, and 0 if all metrics of the gates are not worse by their margins.`,
		Example: `  touchstone compare before.db after.db
  touchstone compare main latest --fail-on slower:3%
  touchstone compare main latest --fail-on 'counts:mount,execve,fsync>0'
  touchstone compare 20261120-0930,20261120-0945 20261121-0930,20261121-0945
  touchstone compare base/ head/ --fail-on slower:3% --fail-on operations.*:CreateAndRun=slower:5%
  touchstone compare base/ head/ --gates gates.yaml -o junit -O junit.xml --github-summary`,
		Args: func(_ *cobra.Command, args []string) error {
			switch flags := len(opts.a) > 0 || len(opts.b) > 0; {
			case flags && len(args) > 0:
				return errors.New("compare: give the sides as arguments or with --a and --b, not both")
			case flags && (len(opts.a) == 0 || len(opts.b) == 0):
				return errors.New("compare: one side is missing; give --a and --b")
			case !flags && len(args) != 2:
				return fmt.Errorf("compare: two sides are needed, and %d are given; separate several runs of a side by commas", len(args))
			case flags:
				return nil
			}
			opts.a, opts.b = args[:1], args[1:]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.compareRuns(cmd.Context(), opts) },
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats()...)
	f := cmd.Flags()
	f.StringArrayVar(&opts.a, "a", nil, "`RUNS` of side A, in place of the first argument")
	f.StringArrayVar(&opts.b, "b", nil, "`RUNS` of side B, in place of the second argument")
	f.BoolVar(&opts.across, "across-machines", false, "compare runs of different machines")
	f.StringSliceVar(&opts.allow, "allow-differences", nil, "`FACTS` that may differ: "+strings.Join(classNames(), ",")+" or all")
	addEmulated(cmd, &opts.emulated)
	f.StringArrayVar(&opts.failOn, "fail-on", nil, "fail if B is worse by this `MARGIN`, as in slower:3% or counts:mount>0")
	f.StringVar(&opts.gates, "gates", "", "read gates from this YAML `FILE`")
	addSummary(cmd, &opts.writeToSummary)
	addInconclusive(cmd, &opts.inconclusive)
	_ = cmd.MarkFlagFilename("gates", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("allow-differences", cobra.FixedCompletions(append(classNames(), "all"), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addEmulated adds the flag for verdicts about speed on an emulated CPU.
func addEmulated(cmd *cobra.Command, flag *bool) {
	cmd.Flags().BoolVar(flag, strings.TrimPrefix(finding.EmulatedVerdictsFlag, "--"), false, "give verdicts about speed on an emulated CPU too")
}

func classNames() (names []string) {
	for _, c := range sides.Classes() {
		names = append(names, string(c))
	}
	return names
}

func (a *App) compareRuns(ctx context.Context, opts compareOptions) error {
	o, err := opts.options()
	if err != nil {
		return usage(err)
	}
	summary, err := summaryFile(opts.writeToSummary)
	if err != nil {
		return err
	}
	if opts.format == formatJUnit && len(o.Gates)+len(o.CountGates) == 0 {
		return usage(errors.New("-o junit writes the gates as test cases: give some with --fail-on or --gates"))
	}
	r := runReader{app: a, ctx: ctx, dir: opts.dir}
	sideA, err := r.side(opts.a)
	if err != nil {
		return err
	}
	sideB, err := r.side(opts.b)
	if err != nil {
		return err
	}
	if o.Learned, err = learnedCounts(&sideA.Runs[0].Host); err != nil {
		return err
	}
	c, err := sides.New(sideA, sideB, o)
	if is[*sides.DifferError](err) || is[*sides.GateError](err) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	d := opts.inconclusive.settle(compare.Document(c))
	if err := a.writeTo(opts.file, func(w io.Writer) error { return a.writeDocument(w, opts.format, opts.file, d) }); err != nil {
		return err
	}
	if err := a.appendSummary(summary, d); err != nil {
		return err
	}
	return a.gateExit(c)
}

// gateExit ends the program with the answer of the gates. The table has the answer itself.
func (a *App) gateExit(c *sides.Comparison) error {
	code := answerCode(c.Outcome())
	if code == ExitOK {
		return nil
	}
	fmt.Fprintln(a.env.Stderr, c.GateSummary())
	return &exitError{code: code}
}

// options reads the flags that a comparison depends on.
func (opts *compareOptions) options() (sides.Options, error) {
	o := sides.Options{AcrossMachines: opts.across, EmulatedVerdicts: opts.emulated}
	for _, name := range opts.allow {
		switch {
		case name == "all":
			o.Allow = sides.Classes()
		case slices.Contains(classNames(), name):
			o.Allow = append(o.Allow, sides.Class(name))
		default:
			return o, fmt.Errorf("--allow-differences %s: no facts have that name; the names are %s and all", name, strings.Join(classNames(), ", "))
		}
	}
	for _, text := range opts.failOn {
		if strings.HasPrefix(text, counts.Prefix) {
			g, err := counts.ParseGate("--fail-on "+text, text)
			if err != nil {
				return o, err
			}
			o.CountGates = append(o.CountGates, g)
			continue
		}
		g, err := sides.ParseGate(text)
		if err != nil {
			return o, err
		}
		o.Gates = append(o.Gates, g)
	}
	if opts.gates != "" {
		text, err := readFile(opts.gates, sides.MaxGateFile)
		if err != nil {
			return o, fmt.Errorf("read gates: %w", err)
		}
		gates, countGates, err := sides.ReadGates(opts.gates, text)
		if err != nil {
			return o, err
		}
		o.Gates, o.CountGates = append(o.Gates, gates...), append(o.CountGates, countGates...)
	}
	return o, sides.Contradictions(o.Gates)
}

// addSummary adds the flag of a summary for GitHub Actions.
func addSummary(cmd *cobra.Command, flag *bool) {
	cmd.Flags().BoolVar(flag, "github-summary", false, "append Markdown to the file in "+stepSummary)
}

// summaryFile is the file of the summary; empty if none is wanted.
func summaryFile(request bool) (string, error) {
	file := os.Getenv(stepSummary)
	switch {
	case !request:
		return "", nil
	case file == "":
		return "", usage(fmt.Errorf("--github-summary needs a file in the variable %s, which GitHub Actions sets; leave it out elsewhere", stepSummary))
	}
	return file, nil
}

// appendSummary appends an answer in Markdown to a file, through a cleaner. It does nothing without a file.
func (a *App) appendSummary(file string, d *document.Document) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("append the summary: %w", err)
	}
	if err := errors.Join(a.writeDocument(clean(f), formatMarkdown, file, d), f.Close()); err != nil {
		return fmt.Errorf("append the summary to %s: %w", file, err)
	}
	return nil
}

// runReader reads the runs of references.
type runReader struct {
	app *App
	ctx context.Context
	dir string
}

// side reads the runs of a side. Values of environment variables are left out.
func (r *runReader) side(texts []string) (sides.Side, error) {
	s := sides.Side{Name: strings.Join(texts, ", ")}
	for _, text := range texts {
		for _, ref := range splitReferences(text) {
			runs, err := r.runs(ref)
			if err != nil {
				return s, err
			}
			if len(runs) == 0 {
				return s, fmt.Errorf("%s has no run", ref)
			}
			for _, run := range runs {
				s.Runs = append(s.Runs, archive.WithoutVariables(run))
			}
		}
	}
	return s, nil
}

// splitReferences splits references at commas, unless the whole text is the name of a file.
func splitReferences(text string) []string {
	if _, err := os.Stat(text); err == nil {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// runs reads the runs of one reference.
func (r *runReader) runs(ref string) ([]result.Run, error) {
	if strings.HasPrefix(ref, archive.BaselinePrefix) {
		return r.stored(ref)
	}
	file, run := ref, ""
	_, err := os.Stat(file)
	if err != nil {
		if cut := strings.LastIndexByte(ref, ':'); cut > 0 {
			if _, failed := os.Stat(ref[:cut]); failed == nil {
				file, run, err = ref[:cut], ref[cut+1:], nil
			}
		}
	}
	switch {
	case err == nil && !r.isBaseline(ref):
		return r.ofFile(file, run)
	case err == nil:
		return nil, usage(fmt.Errorf("%q is a file and a baseline; write ./%s for the file, or %s%s for the baseline", ref, ref, archive.BaselinePrefix, ref))
	case strings.ContainsRune(ref, os.PathSeparator):
		return nil, fmt.Errorf("read runs: %w", err)
	}
	runs, err := r.stored(ref)
	if is[*store.IDError](err) {
		err = fmt.Errorf("%w; no baseline and no file has that name", err)
	}
	return runs, err
}

// isBaseline reports whether the folder has a baseline with a name. A folder without results has none.
func (r *runReader) isBaseline(name string) bool {
	if store.CheckBaselineName(name) != nil {
		return false
	}
	runs, err := r.stored(archive.BaselinePrefix + name)
	return err == nil && runs != nil
}

// stored reads runs of the results in the folder.
func (r *runReader) stored(ref string) (runs []result.Run, err error) {
	err = r.app.withStore(r.ctx, r.dir, func(db *store.Store) error {
		runs, err = archive.Runs(r.ctx, db, ref)
		return err
	})
	return runs, err
}

// ofFile reads all runs of a database, an export or a folder, or one of them.
func (r *runReader) ofFile(file, ref string) ([]result.Run, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		path := filepath.Join(file, databaseName)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder %s has no results: it has no %s", file, databaseName)
		}
		file = path
	}
	if isDatabase(file) {
		return r.ofDatabase(file, ref)
	}
	f, err := openExport(r.ctx, file, nil, textfile.Export)
	if err != nil {
		return nil, fmt.Errorf("read runs of %s: %w", file, err)
	}
	doc, err := result.Decode(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if ref == "" {
		return doc.Runs, nil
	}
	var matches []result.Run
	for _, run := range doc.Runs {
		if run.ID == ref {
			return []result.Run{run}, nil
		}
		if strings.HasPrefix(run.ID, ref) {
			matches = append(matches, run)
		}
	}
	if len(matches) != 1 {
		return nil, usage(fmt.Errorf("read %s: %d runs have an ID that begins with %q; give the whole ID", file, len(matches), ref))
	}
	return matches, nil
}

// readFile reads a file up to one byte more than limit.
func readFile(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// isDatabase reports whether a file begins as a SQLite file does. This process must not have the file open: to close it here drops the locks of
// SQLite.
func isDatabase(file string) bool {
	const magic = "SQLite format 3\x00"
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return errors.Join(err, f.Close()) == nil && bytes.Equal(head, []byte(magic))
}

func (r *runReader) ofDatabase(file, ref string) (runs []result.Run, err error) {
	db, err := store.OpenReadOnly(r.ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	refs := []string{ref}
	if ref == "" {
		records, err := db.Recorded(r.ctx)
		if err != nil {
			return nil, err
		}
		refs = nil
		for _, record := range records {
			refs = append(refs, record.ID)
		}
	}
	for _, ref := range refs {
		run, err := db.Run(r.ctx, ref)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}
