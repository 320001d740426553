package ci

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// MostMarkdown is the largest size of a comparison in Markdown, in bytes. GitHub refuses comments above 65536 characters.
const MostMarkdown = 60_000

// Markdown is a text for a comment of a pull request, or for a summary. Rows that do not fit into [MostMarkdown] bytes are left out, and
// their number is named.
type Markdown struct {
	// Whole is the command with all rows.
	Whole string
	text  strings.Builder
}

// Heading begins the text.
func (m *Markdown) Heading(text string) { fmt.Fprintf(&m.text, "### Touchstone: %s\n", escape(text)) }

// Paragraph adds a paragraph.
func (m *Markdown) Paragraph(text string) { fmt.Fprintf(&m.text, "\n%s\n", escape(text)) }

// Note adds a quoted paragraph.
func (m *Markdown) Note(text string) { fmt.Fprintf(&m.text, "\n> %s\n", escape(text)) }

// Fold adds a table that a reader unfolds. It adds nothing without rows.
func (m *Markdown) Fold(summary string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(&m.text, "\n<details><summary>%s</summary>\n", escape(summary))
	m.Table(header, rows)
	m.text.WriteString("\n</details>\n")
}

// Table adds a table.
func (m *Markdown) Table(header []string, rows [][]string) {
	line := func(cells []string) string {
		text := "|"
		for _, cell := range cells {
			text += " " + escape(cell) + " |"
		}
		return text + "\n"
	}
	m.text.WriteString("\n" + line(header) + "|" + strings.Repeat("---|", len(header)) + "\n")
	for i, row := range rows {
		text := line(row)
		if m.text.Len()+len(text) > MostMarkdown {
			fmt.Fprintf(&m.text, "\n%d of %d rows are left out; %s has all of them.\n", len(rows)-i, len(rows), m.Whole)
			return
		}
		m.text.WriteString(text)
	}
}

// Write writes the text.
func (m *Markdown) Write(w io.Writer) error {
	_, err := io.WriteString(w, m.text.String())
	return err
}

// escape makes text from results plain in Markdown: it is one line, and no character has a meaning.
func escape(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return plain.Replace(address.ReplaceAllString(text, "$1\u200b."))
}

// address matches the beginning of a bare address, which becomes a link without a scheme.
var address = regexp.MustCompile(`(?i)\b(www)\.`)

var plain = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "~", `\~`, "#", `\#`, "!", `\!`,
	// A mention would notify a user, and a bare address would become a link.
	"@", "@\u200b", "://", ":\u200b//",
	// A line of a log that begins with it is a command of GitHub. The signs of other commands are escaped above.
	"::", ":\u200b:",
)
