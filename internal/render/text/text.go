// Package text writes a document for a terminal.
//
// Colour repeats words and is off by default. Text of programs loses its control characters, so that no runtime can write to
// the terminal through a document.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// Options describe the terminal.
type Options struct {
	// Width is the number of columns; 0 stands for 100, less than 60 for 60.
	Width int
	// Color allows ANSI escapes for bold, dim, green and red.
	Color bool
}

const (
	defaultWidth = 100
	leastWidth   = 60
	// longestName is the largest indent of the texts of facts.
	longestName = 22
	// indent is the margin of a section.
	indent = "  "
)

// Write writes d to w.
func Write(w io.Writer, d *document.Document, opts Options) error {
	p := newPrinter(opts)
	if d.Title != "" {
		p.wrapped(bold, "", d.Title)
	}
	for _, note := range d.Notes {
		p.text(note)
	}
	p.blocks(d.Blocks)
	if len(d.Answer) > 0 {
		p.line("")
	}
	for _, sentence := range d.Answer {
		p.text(sentence)
	}
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("write the %s: %w", d.Kind, err)
	}
	return nil
}

// style is the ANSI code of a piece of text.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	red   style = "31"
	green style = "32"
)

// styles are the styles of the tones.
var styles = map[document.Tone]style{
	document.Strong: bold, document.Faint: dim, document.Good: green, document.Bad: red, document.Alarm: red,
}

// marks precede a paragraph or an item with a tone that words alone do not show.
var marks = map[document.Tone]string{document.Alarm: "! ", document.Advice: "→ "}

type printer struct {
	out    strings.Builder
	width  int
	color  bool
	margin string
}

func newPrinter(opts Options) *printer {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	return &printer{width: max(opts.Width, leastWidth), color: opts.Color}
}

func (p *printer) styled(s string, st style) string {
	if !p.color || st == plain || s == "" {
		return s
	}
	return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string) {
	p.out.WriteString(strings.TrimRight(s, " "))
	p.out.WriteByte('\n')
}

// wrapped breaks text into lines. The first line follows lead, the others are indented like it.
func (p *printer) wrapped(st style, lead, text string) {
	p.wrappedAfter(lead, utf8.RuneCountInString(lead), st, text)
}

// wrappedAfter is wrapped after a lead that is width columns wide on the terminal. A lead with a style of its own has escapes, too.
func (p *printer) wrappedAfter(lead string, width int, st style, text string) {
	current, columns, empty := "", width, true
	flush := func() {
		if lead != "" && strings.Contains(lead, "\x1b") {
			p.line(lead + p.styled(current, st))
		} else {
			p.line(p.styled(lead+current, st))
		}
		lead, current, columns, empty = strings.Repeat(" ", width), "", width, true
	}
	for _, word := range strings.Fields(clean(text)) {
		size := utf8.RuneCountInString(word)
		if !empty && columns+1+size > p.width {
			flush()
		}
		if !empty {
			current, columns = current+" ", columns+1
		}
		current, columns, empty = current+word, columns+size, false
	}
	flush()
}

// clean replaces control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		default:
			return r
		}
	}, s)
}

// blocks writes blocks one below the other. A blank line is before each table, each section and each list with a title, and after each table, each section and
// each group of facts, but not above a faint paragraph.
func (p *printer) blocks(blocks []document.Block) {
	blocks = document.WithoutDetails(blocks)
	for i, b := range blocks {
		if list, is := b.(document.List); i > 0 && (parted(blocks[i-1]) && !isLegend(b) || is && list.Title != "") {
			p.gap(b)
		}
		switch b := b.(type) {
		case document.Section:
			p.section(&b)
		case document.Facts:
			p.facts(&b)
		case document.Text:
			p.text(b)
		case document.Verbatim:
			for line := range strings.Lines(b.Text) {
				p.line(p.margin + indent + clean(line))
			}
		case document.List:
			p.list(&b)
		case document.Table:
			p.table(&b)
		case document.Course:
			p.course(&b)
		case document.Matrix:
			p.table(b.Table())
		case document.Lanes, document.Plot, document.Bars, document.Timeline: // the tables have their numbers
		}
	}
}

// parted reports whether a blank line follows a block.
func parted(b document.Block) bool {
	switch b.(type) {
	case document.Section, document.Facts, document.Table, document.Course, document.Matrix:
		return true
	case document.Text, document.Verbatim, document.List, document.Lanes, document.Plot, document.Bars, document.Timeline:
	}
	return false
}

// isLegend reports whether a block is a legend, which stands right below its table.
func isLegend(b document.Block) bool {
	text, is := b.(document.Text)
	return is && text.Tone == document.Faint
}

// gap writes a blank line before a block that does not write its own.
func (p *printer) gap(next document.Block) {
	switch next.(type) {
	case document.Section, document.Table, document.Matrix, document.Lanes, document.Plot, document.Bars, document.Timeline:
	case document.Facts, document.Text, document.Verbatim, document.List, document.Course:
		p.line("")
	}
}

func (p *printer) section(s *document.Section) {
	p.line("")
	if s.Title != "" {
		p.wrapped(bold, p.margin, s.Title)
	}
	outer := p.margin
	p.margin = indent
	p.blocks(s.Blocks)
	p.margin = outer
}

func (p *printer) text(t document.Text) {
	p.wrapped(styles[t.Tone], p.margin+marks[t.Tone], t.Text)
}

// facts aligns the texts of all facts.
func (p *printer) facts(f *document.Facts) {
	width := 0
	for _, item := range f.Items {
		width = max(width, utf8.RuneCountInString(clean(item.Name)))
	}
	width = min(width, longestName)
	for _, item := range f.Items {
		name := clean(item.Name)
		blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(name))+2)
		columns := utf8.RuneCountInString(p.margin + name + blanks)
		p.wrappedAfter(p.margin+p.styled(name, styles[item.Tone])+blanks, columns, plain, item.Text)
		for _, note := range item.Notes {
			p.wrapped(styles[note.Tone], strings.Repeat(" ", columns), note.Text)
		}
	}
}

func (p *printer) list(l *document.List) {
	if l.Title != "" {
		p.wrapped(plain, p.margin, l.Title)
	}
	for i, item := range l.Items {
		mark := marks[item.Tone]
		switch {
		case mark != "":
		case l.Ordered:
			mark = fmt.Sprintf("%d. ", i+1)
		default:
			mark = "- "
		}
		lead := p.margin + mark
		p.wrapped(styles[item.Tone], lead, item.Text)
		for _, line := range item.Lines {
			p.wrapped(plain, strings.Repeat(" ", utf8.RuneCountInString(lead)), line)
		}
	}
}
