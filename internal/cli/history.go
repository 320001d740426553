package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/spf13/cobra"

	answer "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/store"
)

type historyOptions struct {
	dir, file         string
	format            format
	benchmark, target string
	emulated          bool
	inconclusive      inconclusive
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("history: a metric is needed; touchstone index lists them")
			}
			if _, err := path.Match(opts.target, ""); err != nil {
				return fmt.Errorf("--target %q is no pattern; write a target, or a target with *", opts.target)
			}
			return atMost(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.history(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			return a.writeTo(opts.file, func(w io.Writer) error {
				return a.writeDocument(w, opts.format, opts.file, opts.inconclusive.settle(answer.Document(&h)))
			})
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats()...)
	cmd.Flags().StringVar(&opts.benchmark, "benchmark", "", "only benchmarks with this `NAME`, or these first components of it")
	cmd.Flags().StringVar(&opts.target, "target", "", "only this `TARGET`, or targets that match a pattern with *")
	addEmulated(cmd, &opts.emulated)
	addInconclusive(cmd, &opts.inconclusive)
	return cmd
}

// history collects the values of a metric, one run after the other.
func (a *App) history(ctx context.Context, metric string, opts historyOptions) (h history.History, err error) {
	defer a.slow("reading the results")()
	err = a.withStore(ctx, opts.dir, func(db *store.Store) error {
		h, err = archive.History(ctx, db, archive.Selection{Metric: metric, Benchmark: opts.benchmark, Target: opts.target, EmulatedVerdicts: opts.emulated})
		return err
	})
	if is[*archive.ValueError](err) {
		err = usage(err)
	}
	return h, err
}
