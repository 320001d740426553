package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/advise"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/store"
)

type adviseOptions struct {
	dir, file string
	format    format
	profile   string
	weights   []string
}

func (a *App) adviseCommand() *cobra.Command {
	var opts adviseOptions
	cmd := &cobra.Command{
		Use:   "advise [RUN...|FLEET]",
		Short: "Rank the targets of runs for a use, with the evidence",
		Long: `Ranks the targets by their cost for a use: a weighted mean over dimensions such as CPU,
disk and start-up. --profile names a use, --weight sets weights of your own.

An order is stated only if the data shows it over all pairs of targets and in 95 % of
the resamples. A target without data of a required dimension, or with more than 5 % of
lost trials, has no place. The command that measures missing data is printed.

The answer ends with a RuntimeClass for Kubernetes and settings of containerd and CRI-O.
Several runs must be of one machine. Name a run by its ID, the beginning of its ID, or
"latest", which is the default. For a fleet the nodes are the observations, and the
answer ends with the overhead of the class on its nodes.`,
		Example: `  touchstone advise --profile web
  touchstone advise 20261120 latest --profile untrusted
  touchstone advise --weight start-up=3 --weight memory-overhead=1 -o json`,
		Args: atMost(report.MostRuns),
		RunE: func(cmd *cobra.Command, refs []string) error {
			profile, err := opts.choose()
			if err != nil {
				return usage(err)
			}
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			fleet, err := a.fleetRuns(cmd.Context(), opts.dir, refs)
			if err != nil {
				return err
			}
			if fleet != nil {
				return a.adviseFleet(cmd.Context(), opts, profile, fleet)
			}
			runs, err := a.loadAll(cmd.Context(), opts.dir, refs, false)
			if err != nil {
				return err
			}
			numbers := analysis.New(runs, analysis.Options{})
			if len(numbers.Machines) > 1 {
				return usage(errors.New("the runs are of different machines, whose values are not compared; name runs of one machine"))
			}
			out := advice.New(runs, numbers, advice.Options{Profile: profile, Folder: opts.dir})
			return a.writeTo(opts.file, func(w io.Writer) error { return a.writeDocument(w, opts.format, opts.file, answer.Document(out)) })
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", documentFormats(formatJUnit)...)
	cmd.Flags().StringVar(&opts.profile, "profile", "", "the use, a `NAME`: "+strings.Join(advice.Names(), ", "))
	cmd.Flags().StringArrayVar(&opts.weights, "weight", nil, "a weight of your own, as `DIMENSION=NUMBER`; several are possible")
	return cmd
}

// adviseFleet ranks the targets of a fleet.
func (a *App) adviseFleet(ctx context.Context, opts adviseOptions, profile advice.Profile, ids []string) error {
	r, err := a.fleetReport(ctx, reportOptions{dir: opts.dir}, analysis.Options{}, ids)
	if err != nil {
		return err
	}
	out := advice.NewFleet(r, advice.Options{Profile: profile, Folder: opts.dir})
	return a.writeTo(opts.file, func(w io.Writer) error { return a.writeDocument(w, opts.format, opts.file, answer.Document(out)) })
}

// choose returns the profile of the flags.
func (o *adviseOptions) choose() (advice.Profile, error) {
	switch {
	case o.profile != "" && len(o.weights) > 0:
		return advice.Profile{}, errors.New("--profile and --weight exclude each other; leave out one of them")
	case o.profile != "":
		return advice.Find(o.profile)
	case len(o.weights) > 0:
		return advice.Parse(o.weights)
	}
	return advice.Profile{}, fmt.Errorf("a use is needed: --profile with one of %s, or --weight DIMENSION=NUMBER", strings.Join(advice.Names(), ", "))
}
