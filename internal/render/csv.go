package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// writeCSV writes the records of a document as comma-separated values, below a line with the names of the columns. A value that does not exist is an
// empty field.
func writeCSV(w io.Writer, d *document.Document, _ Options) error {
	if d.Records == nil {
		return fmt.Errorf("a %s has no records, and so no CSV", d.Kind)
	}
	out, records := csv.NewWriter(w), d.Records()
	if err := out.Write(records.Columns); err != nil {
		return err
	}
	for _, row := range records.Rows {
		fields := make([]string, len(row))
		for i, value := range row {
			fields[i] = field(value)
		}
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// field spells a value. Numbers have all their digits.
func field(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return harmless(value)
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	default: // an int or a bool
		return fmt.Sprint(value)
	}
}

// harmless makes a text one line, and puts an apostrophe before a text that a spreadsheet would take for a formula.
func harmless(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, text)
	if strings.HasPrefix(text, " ") || strings.ContainsAny(text[:min(1, len(text))], "=+-@") {
		return "'" + text
	}
	return text
}
