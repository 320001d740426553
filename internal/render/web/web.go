// Package web has what a page needs apart from documents: the policy, the characters, the style sheet, and the axes and marks of drawings.
//
// A page is one file without a font or a network. It can be mailed, archived and printed, and it is safe to open although its text may come from
// runs of others: the policy in it forbids every load, and every script except page.js.
package web

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Style is the style sheet of a page: colours, headings, the table of contents, tables. A format appends its own rules.
//
//go:embed web.css
var Style string

// Policy forbids everything except a style sheet and at most one script, whose hashes are in the policy.
func Policy(style string, scripts ...string) string {
	policy := "default-src 'none'; style-src " + source(style)
	for _, script := range scripts {
		policy += "; script-src " + source(script)
	}
	return policy + "; base-uri 'none'; form-action 'none'"
}

func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write fills a template with the content of a page, and writes it as it grows: a page can have megabytes. No text of the content has a meaning in HTML.
func Write(w io.Writer, t *template.Template, name string, content any) error {
	buffer := bufio.NewWriter(w)
	page := transform.NewWriter(buffer, runes.Map(permitted))
	err := t.ExecuteTemplate(page, name, content)
	if err == nil {
		err = page.Close()
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// Clean replaces the characters that a page must not have.
func Clean(s string) string { return strings.Map(permitted, s) }

// permitted replaces control characters by U+FFFD. Programs print them, and HTML forbids them, escaped or not. Those that turn the direction of the text
// around would put words of a run into other words.
func permitted(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
}

// Tie prevents line breaks between a number and its unit: "95 %", "2.4 ×".
func Tie(s string) string {
	return strings.NewReplacer(" %", "\u00a0%", " × ", "\u00a0×\u00a0", " ×", "\u00a0×", " ms,", "\u00a0ms,", " µs,", "\u00a0µs,", " ns,", "\u00a0ns,").Replace(s)
}
