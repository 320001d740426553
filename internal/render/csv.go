package render

import (
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/rows"
)

// writeRows returns a format with the records of a document. A value that does not exist is an empty field.
func writeRows(name string, separator rune) func(io.Writer, *document.Document, Options) error {
	return func(w io.Writer, d *document.Document, _ Options) error {
		if d.Records == nil {
			return nothing("a %s has no records, and so no %s", d.Kind, name)
		}
		records := d.Records()
		return rows.Write(w, separator, records.Columns, func(row func(values ...any) error) error {
			for _, values := range records.Rows {
				if err := row(values...); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
