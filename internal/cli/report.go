package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/text"
	"github.com/touchstone-bench/touchstone/internal/store"
)

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
			return a.writeReport(opts, report.New(runs, report.Options{AcrossMachines: opts.across}))
		},
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT` of the report", formatTable, formatJSON, formatHTML)
	cmd.Flags().BoolVar(&opts.across, "across-machines", false, "compare absolute values too, with the values of the first run")
	return cmd
}

type reportOptions struct {
	dir, file string
	format    format
	// across is --across-machines.
	across bool
}

func (a *App) writeReport(opts reportOptions, r report.Report) error {
	return a.writeTo(opts.file, func(w io.Writer) error {
		switch opts.format {
		case formatJSON:
			return reportjson.Write(w, r)
		case formatHTML:
			return html.Write(w, r)
		default:
			return text.Write(w, r, text.Options{Width: a.env.Width, Color: a.env.Color && opts.file == ""})
		}
	})
}
