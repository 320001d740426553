package cli

import (
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render"
)

// writeDocument writes an answer in a format. A file and a pipe have no colours.
func (a *App) writeDocument(w io.Writer, f format, file string, d *document.Document) error {
	options := render.Options{Width: a.env.Width, Color: a.env.Color && file == "" && f == formatTable}
	switch {
	case options.Color:
		w = styledWriter(w)
	case f == formatJSON:
		w = jsonWriter(w)
	}
	for _, known := range render.Formats() {
		if known.Name == string(f) {
			return known.Write(w, d, options)
		}
	}
	return fmt.Errorf("no format is called %q", f)
}
