package cli

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/answer/summary"
	"github.com/touchstone-bench/touchstone/internal/report"
)

// The values of --summary.
const (
	summaryCompact format = "compact"
	summaryFull    format = "full"
	summaryNone    format = "none"
)

// addSummarySize adds the --summary flag, which decides how much of the results the terminal shows.
func addSummarySize(cmd *cobra.Command, value *format, size format) {
	*value = size
	flag := formatFlag{value, []format{summaryCompact, summaryFull, summaryNone}}
	cmd.Flags().Var(flag, "summary", "`SIZE` of the table format: "+flag.choice())
	_ = cmd.RegisterFlagCompletionFunc("summary", cobra.FixedCompletions(flag.names(), cobra.ShellCompDirectiveNoFileComp))
}

// writeSummary writes a run on one screen, in a file and in a pipe for a terminal of the usual width.
func (a *App) writeSummary(w io.Writer, opts reportOptions, r *report.Report) error {
	width := a.env.Width
	if width == 0 {
		width = usualWidth
	}
	command := strings.Join(append([]string{"touchstone report"}, opts.refs...), " ")
	if filepath.Clean(opts.dir) != defaultDir {
		command += " -d " + opts.dir
	}
	return a.writeSized(w, width, formatTable, opts.file, summary.Document(r, summary.Options{Width: width, Command: command, Page: opts.page}))
}
