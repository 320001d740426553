package render

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// mostMarkdown is the largest size of a document in Markdown, in bytes. GitHub refuses comments above 65536 characters.
const mostMarkdown = 60_000

// markdown is a text for a comment of a pull request, for a summary, or for a page of a repository.
type markdown struct {
	text strings.Builder
	// whole names what has the parts that are left out.
	whole string
	// full is set when parts are left out.
	full bool
}

// writeMarkdown writes a document in Markdown: the answer first, and folded parts as details. Parts and rows that do not fit into a comment are left
// out, and the text says so.
func writeMarkdown(w io.Writer, d *document.Document, _ Options) error {
	m := markdown{whole: d.Whole}
	fmt.Fprintf(&m.text, "### %s\n", plain(heading(d.Title)))
	for _, t := range append(append([]document.Text{}, d.Notes...), d.Answer...) {
		m.paragraph(t)
	}
	m.blocks(d.Blocks, 4)
	_, err := io.WriteString(w, m.text.String())
	return err
}

// program begins the heading of each text, so that a reader of a comment, and package textfile, know the program.
const program = "Touchstone"

func heading(title string) string {
	if strings.HasPrefix(title, program) {
		return title
	}
	return program + ": " + title
}

func (m *markdown) blocks(blocks []document.Block, level int) {
	for _, b := range document.WithoutDetails(blocks) {
		if !m.fits("") {
			return
		}
		switch b := b.(type) {
		case document.Section:
			m.section(&b, level)
		case document.Facts:
			for i, f := range b.Items {
				if i == 0 {
					m.text.WriteString("\n")
				}
				line := fmt.Sprintf("- **%s**: %s\n", plain(f.Name), plain(f.Text))
				for _, note := range f.Notes {
					line += fmt.Sprintf("  %s\n", plain(note.Text))
				}
				if !m.fits(line) {
					return
				}
				m.text.WriteString(line)
			}
		case document.Text:
			m.paragraph(b)
		case document.Verbatim:
			text := "\n"
			for line := range strings.Lines(b.Text) {
				text += "    " + plain(line) + "\n"
			}
			if m.fits(text) {
				m.text.WriteString(text)
			}
		case document.List:
			m.list(&b)
		case document.Table:
			m.table(&b)
		case document.Course:
			m.course(&b)
		case document.Matrix:
			m.table(b.Table())
		case document.Lanes, document.Plot, document.Bars, document.Timeline: // the tables have their numbers
		}
	}
}

// fits reports whether there is room for a text. Without it the document ends with the name of the whole one.
func (m *markdown) fits(text string) bool {
	if !m.full && m.text.Len()+len(text) > mostMarkdown {
		m.full = true
		fmt.Fprintf(&m.text, "\nThe rest is left out; %s has it.\n", plain(m.whole))
	}
	return !m.full
}

func (m *markdown) section(s *document.Section, level int) {
	switch {
	case s.Folded:
		fmt.Fprintf(&m.text, "\n<details><summary>%s</summary>\n", plain(s.Title))
		m.blocks(s.Blocks, level)
		m.text.WriteString("\n</details>\n")
		return
	case s.Title != "":
		fmt.Fprintf(&m.text, "\n%s %s\n", strings.Repeat("#", min(level, 6)), plain(s.Title))
	}
	m.blocks(s.Blocks, level+1)
}

// paragraph quotes what a reader must not miss.
func (m *markdown) paragraph(t document.Text) {
	mark := ""
	if t.Tone == document.Alarm || t.Tone == document.Advice {
		mark = "> "
	}
	fmt.Fprintf(&m.text, "\n%s%s\n", mark, plain(t.Text))
}

func (m *markdown) list(l *document.List) {
	if l.Title != "" {
		fmt.Fprintf(&m.text, "\n%s\n", plain(l.Title))
	}
	m.text.WriteString("\n")
	for i, item := range l.Items {
		mark := "-"
		if l.Ordered {
			mark = fmt.Sprintf("%d.", i+1)
		}
		line := fmt.Sprintf("%s %s\n", mark, plain(strings.Join(append([]string{item.Text}, item.Lines...), " ")))
		if !m.fits(line) {
			return
		}
		m.text.WriteString(line)
	}
}

func (m *markdown) course(c *document.Course) {
	m.table(c.Table())
	l := document.List{}
	for _, change := range c.Breaks {
		place := strings.Join(c.Points[change.Index].Labels, " ")
		l.Items = append(l.Items, document.Item{Span: document.Span{Text: "Change before " + place + ": " + change.Text}, Lines: change.Lines})
	}
	if l.Items != nil {
		m.list(&l)
	}
}

func (m *markdown) table(t *document.Table) {
	if len(t.Rows) == 0 {
		return
	}
	for i, row := range t.Rows {
		line := "|"
		for _, cell := range row {
			line += " " + inCell(cell) + " |"
		}
		line += "\n"
		switch {
		case i == 0:
			line = "\n" + line + rule(t) + "\n"
		case m.text.Len()+len(line) > mostMarkdown:
			fmt.Fprintf(&m.text, "\n%d of %d rows are left out; %s has all of them.\n", len(t.Rows)-i, len(t.Rows)-1, plain(m.whole))
			return
		}
		m.text.WriteString(line)
	}
}

// rule is the line below the heading of a table. A column without a word is on the right.
func rule(t *document.Table) string {
	line := "|"
	for c := range t.Rows[0] {
		mark := "--:|"
		if c == 0 || slices.ContainsFunc(t.Rows[1:], func(row []document.Cell) bool {
			return c < len(row) && len(row[c]) > 0 && word.MatchString(row[c][0].Text)
		}) {
			mark = "---|"
		}
		line += mark
	}
	return line
}

// word matches a text that begins with a letter.
var word = regexp.MustCompile(`^\pL`)

// inCell puts the lines of a cell below each other.
func inCell(c document.Cell) string {
	var lines []string
	for _, span := range c {
		if span.Text != "" {
			lines = append(lines, plain(span.Text))
		}
	}
	return strings.Join(lines, "<br>")
}

// plain makes text from results plain in Markdown: it is one line without control characters, and no character has a meaning.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
	return item.ReplaceAllString(literal.Replace(address.ReplaceAllString(text, "$1\u200b.")), `$1\$2`)
}

// item matches the beginning of a list: a sign, or a number with its mark.
var item = regexp.MustCompile(`^([0-9]*)([-+.)] )`)

// address matches the beginning of a bare address, which becomes a link without a scheme.
var address = regexp.MustCompile(`(?i)\b(www)\.`)

var literal = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "~", `\~`, "#", `\#`, "!", `\!`,
	// A mention would notify a user, and a bare address would become a link.
	"@", "@\u200b", "://", ":\u200b//",
	// A line of a log that begins with it is a command of GitHub. The signs of other commands are escaped above.
	"::", ":\u200b:",
	// GitHub takes a text between two of them for a formula.
	"$", "&#36;",
)
