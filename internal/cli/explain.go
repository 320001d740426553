package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	answer "github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/store"
)

type explainOptions struct {
	dir, file      string
	format         format
	run, benchmark string
	emulated       bool
}

func (a *App) explainCommand() *cobra.Command {
	var opts explainOptions
	cmd := &cobra.Command{
		Use:   "explain A B",
		Short: "Name the causes of a difference between two targets of a run",
		Long: `Shows why target B takes more or less time than target A: for each call of the engine
the difference between the untraced trials, and its causes from the traced ones. A cause
is a step, a component and a state: running, waiting for a CPU, or blocked in a system
call. Beside them are the counts that differ: programs, mounts, fsyncs, system calls.

The run needs three traces of both targets, as from --plan explain or --trace 3. A part
is a cause only if its ranges over the traces do not overlap. The rest of the difference
has a row of its own.`,
		Example: `  touchstone benchmark --plan explain
  touchstone explain oci/crun oci/runc
  touchstone explain oci/runc containerd/runc --benchmark operations.container.lifecycle -o json`,
		Args: between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.explain(cmd.Context(), args[0], args[1], opts)
			if err != nil {
				return err
			}
			return a.writeTo(opts.file, func(w io.Writer) error { return a.writeDocument(w, opts.format, opts.file, answer.Document(e)) })
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats(formatJUnit)...)
	cmd.Flags().StringVar(&opts.run, "run", store.Latest, "the `RUN`: an ID, the beginning of an ID, or latest")
	cmd.Flags().StringVar(&opts.benchmark, "benchmark", "", "only benchmarks with this `NAME`, or these first components of it")
	addEmulated(cmd, &opts.emulated)
	return cmd
}

// explain explains a recorded run.
func (a *App) explain(ctx context.Context, nameA, nameB string, opts explainOptions) (*explain.Explanation, error) {
	runs, err := a.loadAll(ctx, opts.dir, []string{opts.run}, false)
	if err != nil {
		return nil, err
	}
	e, err := explain.New(&runs[0], nameA, nameB, explain.Options{
		Matches:          func(name string) bool { return opts.benchmark == "" || bench.Matches(opts.benchmark, name) },
		EmulatedVerdicts: opts.emulated,
	})
	if err != nil {
		return nil, usage(fmt.Errorf("explain: %w", err))
	}
	return e, nil
}
