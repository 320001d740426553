// Package html writes a report as one HTML file that needs nothing else: no network, no
// script, no font. It can be mailed, archived beside a paper, printed, and read in ten years.
//
// The content security policy in the file forbids every load and every script, so that a
// report of an imported run can be opened without trust: text of runs reaches the page only
// through html/template, and drawings hold only coordinates that this package has computed.
// That is also why there is no sorting or highlighting by script: nothing here needs it, and
// a policy without exceptions is worth more.
//
// Points are drawn in the order of time within a target's lane, from top to bottom by block,
// so that drift shows as a slope and two modes as two columns. Lanes lie and do not stand, for
// names of targets are long and there may be many.
package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/report"
)

//go:embed report.css
var style string

//go:embed templates
var files embed.FS

// Write writes m to w as one HTML file, the same bytes for the same model.
func Write(w io.Writer, m report.Model) error { return write(w, "report.html", newPage(&m)) }

// write fills a template.
func write(w io.Writer, name string, data any) error {
	t, err := template.New("report").ParseFS(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("parse the report's templates: %w", err)
	}
	var page strings.Builder
	if err := t.ExecuteTemplate(&page, name, data); err != nil {
		return fmt.Errorf("fill the report's templates: %w", err)
	}
	if _, err := io.WriteString(w, strings.Map(permitted, page.String())); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// permitted puts U+FFFD in the place of control characters, which programs print and HTML
// forbids, escaped or not.
func permitted(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// policy forbids all but the one style sheet in the file, known by its hash.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}
