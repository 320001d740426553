package cli

import (
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
	var dir, format, file string
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Show the results of a run: as a table, JSON or an HTML page",
		Long: `Shows the results of a run: medians with their intervals, ratios to the baseline with
verdicts, warnings, and what could not be measured. The same run gives the same
report. A run is named by its ID, the beginning of it, or "latest", which is the
default.`,
		Example: `  touchstone report
  touchstone report 20261120 -o html -O report.html`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, refs []string) error {
			if !slices.Contains(reportFormats, format) {
				return usage(fmt.Errorf("--output %q: must be one of %s", format, strings.Join(reportFormats, ", ")))
			}
			refs = append(refs, store.Latest)
			run, err := a.load(cmd.Context(), dir, refs[0])
			if err != nil {
				return err
			}
			m := newModel(run)
			return a.writeTo(file, func(w io.Writer) error {
				switch format {
				case "json":
					return reportjson.Write(w, m)
				case "html":
					return html.Write(w, m)
				default:
					return text.Write(w, m, text.Options{Width: a.env.Width, Color: a.env.Color && file == ""})
				}
			})
		},
	}
	addDir(cmd, &dir)
	addFile(cmd, &file)
	cmd.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT` of the report: table, json or html")
	// The values are known, so the shell can complete them.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// newModel makes the model of a report. Its bootstraps have the run's own seed, so that
// it is the same each time.
func newModel(run result.Run) report.Model { return report.New(run, report.Options{Seed: run.Seed}) }
