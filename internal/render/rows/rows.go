// Package rows writes rows of values for spreadsheets and programs: comma-separated (RFC 4180) or tab-separated, below a line with the names of the
// columns.
package rows

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Separators of fields.
const (
	Comma = ','
	Tab   = '\t'
)

// Write writes a line with the names of the columns, and the rows that next passes to its argument. A value is a string, a float64, an int, a bool, or
// nil, which is an empty field.
func Write(w io.Writer, separator rune, columns []string, next func(row func(values ...any) error) error) error {
	out := csv.NewWriter(w)
	out.Comma = separator
	if err := out.Write(columns); err != nil {
		return err
	}
	fields := make([]string, len(columns))
	err := next(func(values ...any) error {
		for i, value := range values {
			fields[i] = field(value)
		}
		return out.Write(fields)
	})
	if err != nil {
		return err
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
	text = OneLine(text)
	if strings.HasPrefix(text, " ") || strings.ContainsAny(text[:min(1, len(text))], "=+-@") {
		return "'" + text
	}
	return text
}

// OneLine replaces each space by a blank, and each other character that is not printable by U+FFFD.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
