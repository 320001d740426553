package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render"
)

// documentFormats are the formats of an answer, without those that it has nothing for.
func documentFormats(exceptions ...format) []format {
	var formats []format
	for _, f := range render.Formats() {
		if !slices.Contains(exceptions, format(f.Name)) {
			formats = append(formats, format(f.Name))
		}
	}
	return formats
}

// writeDocument writes an answer in a format. A file and a pipe have no colours.
func (a *App) writeDocument(w io.Writer, f format, file string, d *document.Document) error {
	return a.writeSized(w, a.env.Width, f, file, d)
}

// writeSized writes an answer for a terminal of a width; 0 stands for a usual one.
func (a *App) writeSized(w io.Writer, width int, f format, file string, d *document.Document) error {
	options := render.Options{Width: width, Color: a.env.Color && file == "" && f == formatTable}
	switch {
	case options.Color:
		w = styledWriter(w)
	case f == formatJSON:
		w = jsonWriter(w)
	}
	for _, candidate := range render.Formats() {
		if candidate.Name == string(f) {
			return candidate.Write(w, d, options)
		}
	}
	return fmt.Errorf("no format is called %q", f)
}

// inconclusive is the meaning of checks without an answer for a server of continuous integration.
type inconclusive string

const failInconclusive inconclusive = "fail"

// addInconclusive adds the flag for the meaning of inconclusive checks.
func addInconclusive(cmd *cobra.Command, i *inconclusive) {
	choice := formatFlag{(*format)(i), []format{format(failInconclusive), "warn", "skip"}}
	*i = failInconclusive
	cmd.Flags().Var(choice, "inconclusive", flagText("`MEANING` of an inconclusive check in -o junit and -o markdown: "+choice.choice()))
	_ = cmd.RegisterFlagCompletionFunc("inconclusive", cobra.FixedCompletions(choice.names(), cobra.ShellCompDirectiveNoFileComp))
}

// settle gives the inconclusive checks of a document their status. The exit code does not change.
func (i inconclusive) settle(d *document.Document) *document.Document {
	statuses := map[inconclusive]document.Status{"warn": document.Warned, "skip": document.Skipped}
	if status, ok := statuses[i]; ok {
		d.Settle(status)
	}
	return d
}
