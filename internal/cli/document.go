package cli

import (
	"fmt"
	"io"
	"slices"

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
