package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// withStore opens the results file of a folder for reading.
func (a *App) withStore(ctx context.Context, dir string, do func(*store.Store) error) error {
	path := filepath.Join(dir, databaseName)
	db, err := store.OpenReadOnly(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist; create it with touchstone benchmark -d %s, or name another folder with -d", path, dir)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// load returns a run that can be resumed: an imported run is an error.
func (a *App) load(ctx context.Context, dir, ref string) (run result.Run, err error) {
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		run, err = db.Run(ctx, ref)
		if err != nil {
			return err
		}
		imported, err := db.Imported(ctx, run.ID)
		if err == nil && imported {
			err = fmt.Errorf("run %s: %w", run.ID, store.ErrImported)
		}
		return err
	})
	return run, err
}

// loadAll returns runs with their trials, each once.
func (a *App) loadAll(ctx context.Context, dir string, refs []string) (runs []result.Run, err error) {
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		named := map[string]string{}
		for _, ref := range refs {
			run, err := db.Run(ctx, ref)
			if err != nil {
				return err
			}
			if first, twice := named[run.ID]; twice {
				return usage(fmt.Errorf("run %s is named twice, by %q and %q; leave out one of them", run.ID, first, ref))
			}
			named[run.ID] = ref
			runs = append(runs, run)
		}
		return nil
	})
	return runs, err
}

func addDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "dir", "d", "out", "`FOLDER` with the results")
}

func (a *App) runsCommand() *cobra.Command {
	var format format
	var dir string
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the recorded runs",
		Long: `Lists the runs in the results folder, the newest first. The state of a run is running,
complete, interrupted or killed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), dir, func(db *store.Store) error {
				runs, err := db.Runs(cmd.Context())
				if err != nil {
					return err
				}
				var rows [][]string
				for _, r := range runs {
					bad := r.Trials[result.Failed] + r.Trials[result.Timeout]
					rows = append(rows, []string{
						r.ID, r.Name, string(r.State), r.Started.Local().Format(time.DateTime),
						fmt.Sprint(r.Trials[result.OK]), fmt.Sprint(bad), fmt.Sprint(r.Trials[result.Skipped]), strings.Join(r.Targets, " "),
					})
				}
				return format.print(a.env.Stdout, runs, []string{"RUN", "PLAN", "STATE", "STARTED", "OK", "FAILED", "SKIPPED", "TARGETS"}, rows)
			})
		},
	}
	addFormat(cmd, &format)
	addDir(cmd, &dir)
	return cmd
}

func (a *App) indexCommand() *cobra.Command {
	var format format
	var dir string
	cmd := &cobra.Command{
		Use:   "index",
		Short: "List every benchmark with stored results",
		Long: `Lists every metric of every benchmark and target with results in the folder, over all
runs, with the number of trials. The index grows with every run of every plan.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), dir, func(db *store.Store) error {
				entries, err := db.Index(cmd.Context())
				if err != nil {
					return err
				}
				var rows [][]string
				for _, e := range entries {
					rows = append(rows, []string{
						e.Benchmark, dash(e.Params), e.Target, e.Metric, fmt.Sprint(e.Trials), fmt.Sprint(len(e.Runs)), e.Last.Local().Format(time.DateTime),
					})
				}
				return format.print(a.env.Stdout, entries, []string{"BENCHMARK", "PARAMETERS", "TARGET", "METRIC", "TRIALS", "RUNS", "LAST"}, rows)
			})
		},
	}
	addFormat(cmd, &format)
	addDir(cmd, &dir)
	return cmd
}

func (a *App) exportCommand() *cobra.Command {
	var dir, file string
	cmd := &cobra.Command{
		Use:   "export [RUN...]",
		Short: "Write runs with all their samples as JSON",
		Long: `Writes runs as one JSON document: the plan, the facts about the host, and every trial
with its phases and samples, with units. The schema is docs/schema/result.schema.json.
Name a run by its ID, the beginning of its ID, or "latest", which is the default.`,
		Example: `  touchstone export > run.json
  touchstone export 20261120 latest -O runs.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, refs []string) error {
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			runs, err := a.loadAll(cmd.Context(), dir, refs)
			if err != nil {
				return err
			}
			doc := result.Document{Generator: tool(), Runs: runs}
			return a.writeTo(file, func(w io.Writer) error { return result.Encode(w, doc) })
		},
	}
	addDir(cmd, &dir)
	addFile(cmd, &file)
	return cmd
}

func addFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "output-file", "O", "", "`FILE` to write, in place of standard output")
}

// writeTo writes standard output, or a file as a whole or not at all.
func (a *App) writeTo(file string, write func(io.Writer) error) error {
	if file == "" {
		return write(a.env.Stdout)
	}
	return writeFile(file, func(f *os.File) error { return write(f) })
}
