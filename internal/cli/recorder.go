package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// recorder executes the plans of a verb on this machine, shows their progress, and records them in the output folder. It is the
// executor of experiments.
type recorder struct {
	app  *App
	opts *benchmarkOptions
}

// addRecorder adds the flags of a verb that executes runs.
func addRecorder(cmd *cobra.Command, opts *benchmarkOptions) {
	f := cmd.Flags()
	f.StringVarP(&opts.dir, "dir", "d", "out", "output `FOLDER`")
	f.BoolVar(&opts.wait, "wait", false, "wait for the end of another run on this machine")
	f.BoolVar(&opts.beside, "allow-concurrent", false, "start beside another run on this machine; the reports mention it")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if opts.wait && opts.beside {
			return usage(errors.New("--wait and --allow-concurrent exclude each other; leave out one of them"))
		}
		return nil
	}
}

// Execute executes one plan, from the beginning or from the end of an earlier part of the run.
func (r *recorder) Execute(ctx context.Context, request experiment.Request) (run experiment.Run, err error) {
	secret, err := r.app.planSecret(r.opts.secret, request.Plan)
	if err != nil {
		return run, err
	}
	trace, err := openTrace(r.app.env.Trace)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(trace.Close(), err) }()
	db, err := openResults(ctx, r.opts.dir, store.Open)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(db.Close(), err) }()
	progress := &progress{status: r.app.status}
	e, err := execution.New(execution.Config{
		Plan: request.Plan, Store: db, RunID: r.app.env.RunID(), Earlier: request.Earlier, Concurrency: r.concurrency(request), Folder: r.opts.dir,
		Secret: secret, Selfcheck: r.app.lastSelfcheck(request.Plan), Tool: tool(), Observer: progress, Trace: trace.handler(),
	})
	if err != nil {
		return run, err
	}
	defer r.app.onAbandon(e.Abandon)()
	progress.clock = e.Clock()
	start := e.Clock().Now()
	run.Outcome, err = e.Run(ctx)
	run.Took = e.Clock().Now().Sub(start)
	progress.clear()
	if run.Recorded {
		record, failure := db.Run(context.WithoutCancel(ctx), e.RunID)
		run.Run, run.Recorded = archive.WithoutVariables(record), failure == nil
		err = errors.Join(err, failure)
	}
	return run, err
}

// concurrency is the reaction to another run.
func (r *recorder) concurrency(request experiment.Request) execution.Concurrency {
	switch {
	case r.opts.beside:
		return execution.Allow
	case r.opts.wait || request.Wait:
		return execution.Wait
	default:
		return execution.Refuse
	}
}
