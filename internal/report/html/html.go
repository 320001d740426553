// Package html writes a report as one HTML file without a network, script or font. It can be mailed, archived beside a paper,
// printed, and read in ten years.
//
// The content security policy in the file forbids every load and every script, so that a report of an untrusted run is safe
// to open. Text of runs reaches the page only through html/template, and drawings have only coordinates of this package. We
// rejected sorting and highlighting by script, because a policy without exceptions is worth more.
//
// Points of a lane are in the order of time, from top to bottom by block, so that drift is a slope and two modes are two
// columns. Lanes are horizontal, because names of targets are long and there may be many.
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

// Write writes r to w as one HTML file, the same bytes for the same report.
func Write(w io.Writer, r report.Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{"tied": tied}).ParseFS(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("parse the report's templates: %w", err)
	}
	var page strings.Builder
	if err := t.ExecuteTemplate(&page, "report.html", newPage(&r)); err != nil {
		return fmt.Errorf("fill the report's templates: %w", err)
	}
	if _, err := io.WriteString(w, strings.Map(permitted, page.String())); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// permitted replaces control characters by U+FFFD. Programs print them, and HTML forbids them, escaped or not.
func permitted(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// policy forbids everything except the style sheet in the file, which has the hash in the policy.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}
