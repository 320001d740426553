package render

import (
	"encoding/json"
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// writeJSON writes the data of a document. docs/schema has the schema of each kind.
func writeJSON(w io.Writer, d *document.Document, _ Options) error {
	if d.Data == nil {
		return nothing("a %s has no JSON", d.Kind)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(d.Data())
}
