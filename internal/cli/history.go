package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	answer "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

type historyOptions struct {
	dir, file         string
	format            format
	benchmark, target string
	emulated          bool
}

func (a *App) historyCommand() *cobra.Command {
	var opts historyOptions
	cmd := &cobra.Command{
		Use:   "history METRIC",
		Short: "Follow a metric over all runs, and find its changes",
		Long: `Shows the values of a metric over all runs in the folder: the median of each run, by
benchmark, parameters, target and machine. A change
of the level is shown with the facts that changed at the same time, such as the version
of the runtime.

A change needs at least 8 runs. If nothing changes, 1 series in 20 has a change by
chance. touchstone index lists the metrics.`,
		Example: `  touchstone history CreateAndRun
  touchstone history CreateAndRun --benchmark operations --target 'oci/*'
  touchstone history HostMemory --target oci/runc -o html -O memory.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("history: a metric is needed; touchstone index lists them")
			}
			if _, err := path.Match(opts.target, ""); err != nil {
				return fmt.Errorf("--target %q is no pattern; write a target, or a target with *", opts.target)
			}
			return atMost(1)(nil, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.history(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			return a.writeTo(opts.file, func(w io.Writer) error {
				return a.writeDocument(w, opts.format, opts.file, answer.Document(&h))
			})
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats(formatJUnit)...)
	cmd.Flags().StringVar(&opts.benchmark, "benchmark", "", "only benchmarks with this `NAME`, or these first components of it")
	cmd.Flags().StringVar(&opts.target, "target", "", "only this `TARGET`, or targets that match a pattern with *")
	addEmulated(cmd, &opts.emulated)
	return cmd
}

// history collects the values of a metric, one run after the other.
func (a *App) history(ctx context.Context, metric string, opts historyOptions) (h history.History, err error) {
	in := func(c result.Cell) bool {
		fits, err := path.Match(opts.target, c.Target) // the pattern was checked
		return (opts.benchmark == "" || bench.Matches(opts.benchmark, c.Benchmark)) && (opts.target == "" || err == nil && fits)
	}
	defer a.slow("reading the results")()
	err = a.withStore(ctx, opts.dir, func(db *store.Store) error {
		index, err := db.Index(ctx)
		if err != nil {
			return err
		}
		hits := map[string]bool{}
		for _, e := range index {
			for _, run := range e.Runs {
				hits[run] = hits[run] || e.Metric == metric && in(e.Cell)
			}
		}
		runs, notes, err := runsInOrder(ctx, db)
		if err != nil {
			return err
		}
		b := history.NewBuilder(metric, in)
		b.EmulatedVerdicts = opts.emulated
		for _, id := range runs {
			if !hits[id] {
				continue
			}
			run, err := db.Run(ctx, id)
			if err != nil {
				return err
			}
			b.Add(execution.WithoutVariables(run))
		}
		if h = b.History(notes...); len(h.Series) == 0 {
			return usage(noHistory(metric, index, in))
		}
		return nil
	})
	return h, err
}

// noHistory is the error for a metric without a value.
func noHistory(metric string, index []store.IndexEntry, in history.Select) error {
	var names, places []string
	for _, e := range index {
		switch {
		case e.Metric == metric:
			places = add(places, e.Benchmark+" on "+e.Target)
		case in(e.Cell):
			names = add(names, e.Metric)
		}
	}
	slices.Sort(names)
	switch {
	case len(places) > 0:
		return fmt.Errorf("no run has a value of %s that --benchmark and --target select; the runs have it of %s", metric, strings.Join(places, ", "))
	case len(names) > 0:
		return fmt.Errorf("no run has a comparable metric %q; the metrics are %s", metric, strings.Join(names, ", "))
	}
	return fmt.Errorf("no run has a metric %q: the folder has no results of this selection", metric)
}

// runsInOrder lists the runs by their start. If the clock was set back between two runs that were recorded here, their times contradict the order
// of recording, and all runs are in that order. A note names the two runs.
func runsInOrder(ctx context.Context, db *store.Store) (ids, notes []string, err error) {
	records, err := db.Recorded(ctx)
	if err != nil {
		return nil, nil, err
	}
	var last store.Recorded
	for _, r := range records {
		if r.Imported || r.Started.IsZero() {
			continue
		}
		if r.Started.Before(last.Started) {
			notes = append(notes, fmt.Sprintf("The clock was set back between the runs %s and %s. The runs are in the order of their recording.", last.ID, r.ID))
			break
		}
		last = r
	}
	if notes == nil {
		slices.SortStableFunc(records, func(a, b store.Recorded) int { return a.Started.Compare(b.Started) })
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids, notes, nil
}
