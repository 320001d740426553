// Package render writes documents: one file or one package below it for each format. A format knows documents and no answer, so a new one is one
// file and one line of [Formats], and shows every answer.
package render

import (
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/render/text"
)

// Options describe the place that the text goes to. Only a terminal needs them.
type Options struct {
	// Width is the number of columns of a terminal; 0 stands for a usual one.
	Width int
	// Color allows ANSI escapes.
	Color bool
}

// Format is a form of a document.
type Format struct {
	// Name is the value of a --format flag.
	Name string
	// Write writes a document. It fails if the writer does, and with an [EmptyError] if the document has nothing that the format can show.
	Write func(w io.Writer, d *document.Document, o Options) error
	// Typeset is set for a format of tables and figures alone. A list of records has nothing for it.
	Typeset bool
}

// EmptyError is the error of a format that has no place for anything in a document.
type EmptyError struct{ text string }

func (e *EmptyError) Error() string { return e.text }

func nothing(format string, args ...any) error { return &EmptyError{fmt.Sprintf(format, args...)} }

// Formats are all formats.
func Formats() []Format {
	return []Format{
		{"table", func(w io.Writer, d *document.Document, o Options) error { return text.Write(w, d, text.Options(o)) }, false},
		{"json", writeJSON, false},
		{"html", func(w io.Writer, d *document.Document, _ Options) error { return html.Write(w, d) }, false},
		{"markdown", writeMarkdown, false},
		{"junit", writeJUnit, false},
		{"csv", writeRows("CSV", rows.Comma), false},
		{"tsv", writeRows("TSV", rows.Tab), false},
		{"latex", writeLaTeX, true},
		{"pgfplots", writePGFPlots, true},
		{"svg", writeSVG, true},
		{"vega-lite", writeVegaLite, true},
	}
}
