package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

type selfcheckOptions struct {
	benchmarkOptions
	target string
	budget time.Duration
	show   bool
}

func (a *App) selfcheckCommand() *cobra.Command {
	var opts selfcheckOptions
	cmd := &cobra.Command{
		Use:   "selfcheck",
		Short: "Find the smallest difference that this machine shows",
		Long: `Compares a runtime with itself, without and with known delays, and shows what
measurements on this machine can show:

  - false alarms: how often the runtime differs from itself
  - the smallest delay that is found at create, start, exec and delete: delays that
    sleep, and delays that use a CPU
  - the part of Touchstone itself in each operation
  - the smallest delay that the verdict of a comparison of two targets shows in 1, 5
    and 20 minutes, in any part of the distribution, with a probability of 80 %
  - the system calls whose counts vary from trace to trace; gates by counts leave
    them out

A small program of Touchstone adds the delays before it executes the runtime. The
runtime without delays goes through the same program.

The result is stored for this machine, and later runs and their reports quote it.
--show prints the stored results.`,
		Example: `  touchstone selfcheck
  touchstone selfcheck --target containerd/runc --managed --budget 10m
  touchstone selfcheck --show`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keepGiven(cmd.Flags(), "managed", &opts.overrides.Managed)
			if opts.show {
				return a.showSelfchecks(opts.format)
			}
			if opts.budget <= 0 {
				return usage(fmt.Errorf("--budget %v: give a time above 0, such as %v", opts.budget, experiment.SelfcheckBudget))
			}
			return a.selfcheck(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.target, "target", "", "the `TARGET` to check (default oci/crun or oci/runc, the first that is installed)")
	f.DurationVar(&opts.budget, "budget", experiment.SelfcheckBudget, "longest `TIME` for all runs together")
	f.BoolVar(&opts.show, "show", false, "print the stored results, and measure nothing")
	addRecorder(cmd, &opts.benchmarkOptions)
	addEngineFlags(cmd, &opts.overrides)
	addOutput(cmd, &opts.format, "`FORMAT` of the printed result", documentFormats(formatJUnit)...)
	return cmd
}

// selfcheck executes the runs, and shows and stores the result.
func (a *App) selfcheck(ctx context.Context, opts selfcheckOptions) (err error) {
	p, err := quickPlan(opts.overrides)
	if err != nil {
		return err
	}
	c, err := experiment.NewSelfcheck(p, opts.target)
	if err != nil {
		return err
	}
	if err := storable(); err != nil {
		return err
	}
	undo, err := writable(opts.dir)
	if err != nil {
		return err
	}
	defer undo()
	if c.Target.Engine != fake.Name {
		if err := c.Open(workdir.HostRoots(), a.env.RunID()); err != nil {
			return err
		}
		defer func() { err = orExit(c.Close(context.WithoutCancel(ctx)), err) }()
	}
	c.Executor, c.Budget, c.Line = &recorder{a, &opts.benchmarkOptions}, opts.budget, a.line
	err = c.Run(ctx)
	switch {
	case is[*experiment.PilotError](err):
		return &exitError{ExitTrials, fmt.Errorf("%w; touchstone report %s -d %s shows the reason", err, c.Pilot.ID, opts.dir)}
	case err != nil:
		return err
	case c.End == experiment.Interrupted:
		return &exitError{ExitInterrupted, errors.New("interrupted; the selfcheck has no result")}
	}
	return a.concludeSelfcheck(c, opts)
}
