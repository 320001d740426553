package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/text"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// reportFormats are the values of --output of report.
var reportFormats = []string{"table", "json", "html"}

func (a *App) reportCommand() *cobra.Command {
	var opts reportOptions
	cmd := &cobra.Command{
		Use:   "report [RUN...]",
		Short: "Show the results of one run or of several runs as tables, JSON or an HTML page",
		Long: fmt.Sprintf(`Shows the results of a run: medians with intervals, ratios to the baseline with
verdicts, warnings, and trials without a number. The report of a run is always the
same. Name a run by its ID, the beginning of its ID, or "latest", which is the default.

With several runs, up to %d, the report covers all of them: the ratio to the
baseline in each run, for each benchmark and target, and the differences between
the runs and their machines. It shows absolute values of different machines and
compares them only with --across-machines, as ratios to the values of the first run.`, report.MostRuns),
		Example: `  touchstone report
  touchstone report 20261120 -o html -O report.html
  touchstone report 20261120 20261121 latest -o html -O machines.html`,
		Args: atMost(report.MostRuns),
		RunE: func(cmd *cobra.Command, refs []string) error {
			if !slices.Contains(reportFormats, opts.format) {
				return usage(fmt.Errorf("--output %q: must be one of %s", opts.format, strings.Join(reportFormats, ", ")))
			}
			if opts.across && len(refs) < 2 {
				return usage(errors.New("--across-machines compares runs: name at least two"))
			}
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			runs, err := a.loadAll(cmd.Context(), opts.dir, refs)
			if err != nil {
				return err
			}
			if len(runs) == 1 {
				return a.writeReport(opts, newModel(runs[0]))
			}
			return a.writeJoint(opts, report.NewJoint(runs, report.JointOptions{AcrossMachines: opts.across}))
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	cmd.Flags().StringVarP(&opts.format, "output", "o", "table", "`FORMAT` of the report: table, json or html")
	cmd.Flags().BoolVar(&opts.across, "across-machines", false, "compare absolute values too, with the values of the first run")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

type reportOptions struct {
	dir, format, file string
	// across is --across-machines.
	across bool
}

func (a *App) writeReport(opts reportOptions, m report.Model) error {
	return a.writeTo(opts.file, func(w io.Writer) error {
		switch opts.format {
		case "json":
			return reportjson.Write(w, m)
		case "html":
			return html.Write(w, m)
		default:
			return text.Write(w, m, a.textOptions(opts))
		}
	})
}

func (a *App) writeJoint(opts reportOptions, j report.Joint) error {
	return a.writeTo(opts.file, func(w io.Writer) error {
		switch opts.format {
		case "json":
			return reportjson.WriteJoint(w, j)
		case "html":
			return html.WriteJoint(w, j)
		default:
			return text.WriteJoint(w, j, a.textOptions(opts))
		}
	})
}

func (a *App) textOptions(opts reportOptions) text.Options {
	return text.Options{Width: a.env.Width, Color: a.env.Color && opts.file == ""}
}

// newModel makes the model of a report. Its bootstraps have the run's own seed, so that
// it is the same each time.
func newModel(run result.Run) report.Model { return report.New(run, report.Options{Seed: run.Seed}) }
