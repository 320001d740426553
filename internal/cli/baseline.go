package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

func (a *App) baselineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Keep runs under a name, to compare later runs with them",
		Long: `Keeps copies of runs under a name in the results file. A baseline does not depend on the
runs that it was saved from, and one baseline can have several runs, which a comparison
needs. touchstone compare NAME latest compares with it.`,
		Example: `  touchstone baseline save main latest
  touchstone baseline save v1.2 20261120-0930,20261120-0945,20261120-1000
  touchstone baseline show main -o json -O main.json`,
	}
	addVerbs(cmd, a.baselineSaveCommand(), a.baselineListCommand(), a.baselineShowCommand(), a.baselineRemoveCommand())
	return cmd
}

func (a *App) baselineSaveCommand() *cobra.Command {
	var dir string
	var replace bool
	cmd := &cobra.Command{
		Use:   "save NAME [RUN...]",
		Short: "Save runs as a baseline",
		Long: `Saves copies of runs under a name. A run is given as in touchstone compare: an ID, the
beginning of an ID, latest, a database, an export, or a baseline. Without a run it is latest.
Values of environment variables in the plans are left out.`,
		Example: `  touchstone baseline save main
  touchstone baseline save main 20261120-0930 20261120-0945 20261120-1000
  touchstone baseline save main main.json --replace`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("save: a name for the baseline is needed")
			}
			return store.CheckBaselineName(args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, refs := args[0], args[1:]
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			r := runReader{app: a, ctx: cmd.Context(), dir: dir}
			side, err := r.side(refs)
			if err != nil {
				return err
			}
			db, err := openResults(cmd.Context(), dir, store.Open)
			if err != nil {
				return err
			}
			err = errors.Join(db.SaveBaseline(cmd.Context(), name, time.Now(), tool(), side.Runs, replace), db.Close())
			if errors.Is(err, store.ErrExists) {
				err = usage(fmt.Errorf("save baseline %q: the name is taken; give another one, or --replace", name))
			}
			if err == nil {
				fmt.Fprintf(a.env.Stderr, "saved baseline %s with %d run(s)\n", name, len(side.Runs))
				if len(side.Runs) < 3 {
					fmt.Fprintln(a.env.Stderr, "note: give a baseline at least 3 runs, because fewer show little of the variation between runs")
				}
			}
			return err
		},
	}
	addDir(cmd, &dir)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a baseline with this name")
	return cmd
}

// completeBaselines completes the name of a baseline.
func (a *App) completeBaselines(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		// A completion reports no errors.
		_ = a.withStore(cmd.Context(), cmd.Flag("dir").Value.String(), func(db *store.Store) error {
			list, err := db.Baselines(cmd.Context())
			for _, b := range list {
				names = append(names, b.Name)
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *App) baselineListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the baselines"}
	header := []string{"BASELINE", "SAVED", "RUNS", "TRIALS", "MACHINES", "TARGETS"}
	return listResults(a, cmd, (*store.Store).Baselines, header, nil, func(b store.Baseline) []string {
		var machines, targets []string
		trials := 0
		for _, r := range b.Runs {
			machines, targets = add(machines, r.Machine), add(targets, r.Targets...)
			trials += r.Trials
		}
		return []string{b.Name, shownTime(b.Saved), fmt.Sprint(len(b.Runs)), fmt.Sprint(trials), dash(strings.Join(machines, " ")), strings.Join(targets, " ")}
	})
}

// add adds the texts that a list does not have.
func add(list []string, texts ...string) []string {
	for _, t := range texts {
		duplicate := t == ""
		for _, l := range list {
			duplicate = duplicate || l == t
		}
		if !duplicate {
			list = append(list, t)
		}
	}
	return list
}

func (a *App) baselineShowCommand() *cobra.Command {
	var dir, file string
	var format format
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the runs of a baseline, or export them",
		Long: `Lists the runs of a baseline. -o json writes them as touchstone export does: another folder
gets them with touchstone import, or with touchstone baseline save NAME FILE.`,
		Args:              between(1, 1),
		ValidArgsFunction: a.completeBaselines,
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs []result.Run
			err := a.withStore(cmd.Context(), dir, func(db *store.Store) (err error) {
				runs, err = db.Baseline(cmd.Context(), args[0])
				return err
			})
			if err != nil {
				return err
			}
			if format == formatJSON {
				return a.export(file, runs...)
			}
			if file != "" {
				return usage(errors.New("-O writes an export: add -o json"))
			}
			return printList(a, format, runs, []string{"RUN", "PLAN", "STATE", "STARTED", "TRIALS", "MACHINE", "TARGETS"}, func(r result.Run) []string {
				var targets []string
				for _, t := range r.Targets {
					targets = append(targets, t.Name)
				}
				return []string{r.ID, r.Name, string(r.State), shownTime(r.Started), fmt.Sprint(len(r.Trials)), dash(r.Host.Hostname), strings.Join(targets, " ")}
			})
		},
	}
	addDir(cmd, &dir)
	addFile(cmd, &file)
	addOutput(cmd, &format, "output `FORMAT`", formatTable, formatJSON)
	return cmd
}

func (a *App) baselineRemoveCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a baseline",
		Long:  `Removes a baseline. The runs that it was saved from stay.`,
		Args:  between(1, 1),

		ValidArgsFunction: a.completeBaselines,
		RunE: func(cmd *cobra.Command, args []string) error {
			// A reader explains a missing file, and a writer would create it.
			if err := a.withStore(cmd.Context(), dir, func(*store.Store) error { return nil }); err != nil {
				return err
			}
			db, err := store.Open(cmd.Context(), filepath.Join(dir, databaseName))
			if err != nil {
				return err
			}
			return errors.Join(db.RemoveBaseline(cmd.Context(), args[0]), db.Close())
		},
	}
	addDir(cmd, &dir)
	return cmd
}
