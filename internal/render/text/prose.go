package text

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
)

const (
	// roomyHeading is a width: a shorter heading is not broken.
	roomyHeading = 7
	// leastText is the least width of a column of texts.
	leastText = 36
	// leastLabel is the least width of labels beside all columns, and usualLabel their greatest width if the columns do not fit.
	leastLabel = 20
	usualLabel = 34
)

var (
	// plainNumber matches a number whose decimal point is aligned, and its decimals.
	plainNumber = regexp.MustCompile(`^(?:[<>≤≥≈] ?)?[-−+]?[0-9,]+((?:\.[0-9]+)?)$`)
	// unitNumber also matches a number with its unit.
	unitNumber = regexp.MustCompile(`^(?:[<>≤≥≈] ?)?[-−+]?[0-9,]+((?:\.[0-9]+)?(?: [^ ]+)?)$`)
	// noteMark matches the mark of a note behind a value.
	noteMark = regexp.MustCompile(`\[[0-9]+\]$`)
)

// alignPoints aligns the numbers of each column at the decimal point, by blanks behind them. A column with a cell of several lines stays.
func (g *grid) alignPoints() {
	number := plainNumber
	if g.prose {
		number = unitNumber
	}
	for c := 1; c < len(g.rows[0]); c++ {
		var cells []document.Cell
		for r := 1; r < len(g.rows); r++ {
			if !g.group(r) && c < len(g.rows[r]) && len(g.rows[r][c]) > 0 {
				cells = append(cells, g.rows[r][c])
			}
		}
		if slices.ContainsFunc(cells, func(cell document.Cell) bool { return len(cell) > 1 }) {
			continue
		}
		fraction, marks, numbers := 0, 0, 0
		for _, cell := range cells {
			value, mark := cutMark(cell[0].Text)
			marks = max(marks, utf8.RuneCountInString(mark))
			if n := number.FindStringSubmatch(value); n != nil {
				numbers++
				fraction = max(fraction, utf8.RuneCountInString(n[1]))
			}
		}
		if numbers == 0 {
			g.left[c] = g.prose
			continue
		}
		for _, cell := range cells {
			value, mark := cutMark(cell[0].Text)
			rest := marks - utf8.RuneCountInString(mark)
			if n := number.FindStringSubmatch(value); n != nil {
				rest += fraction - utf8.RuneCountInString(n[1])
			}
			cell[0].Text = value + mark + blanks(rest)
		}
		for i := range g.rows[0][c] {
			g.rows[0][c][i].Text += blanks(marks)
		}
	}
}

// cutMark cuts the mark of a note off a value.
func cutMark(text string) (value, mark string) {
	mark = noteMark.FindString(text)
	return strings.TrimSuffix(text, mark), mark
}

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// breakLines breaks the texts, the headings and the labels of a table with prose, so that it fits into a width.
func (g *grid) breakLines(width int) {
	room := g.textRoom(width)
	rest := width
	for c := 1; c < len(g.rows[0]); c++ {
		for r := 1; r < len(g.rows); r++ {
			if !g.group(r) && c < len(g.rows[r]) && len(g.rows[r][c]) == 1 && g.left[c] {
				g.rows[r][c] = brokenSpan(g.rows[r][c][0], room, 0)
			}
		}
		g.breakHeading(c)
		rest -= g.gap() + g.columnWidth(c)
	}
	if rest < leastLabel { // the columns continue below
		rest = usualLabel
	}
	for r := 1; r < len(g.rows); r++ {
		if !g.group(r) && len(g.rows[r]) > 0 && len(g.rows[r][0]) == 1 {
			g.rows[r][0] = brokenSpan(g.rows[r][0][0], rest, len(indent))
		}
	}
	height := 0
	for _, cell := range g.rows[0] {
		height = max(height, len(cell))
	}
	for c, cell := range g.rows[0] { // headings end beside each other
		g.rows[0][c] = append(make(document.Cell, height-len(cell)), cell...)
	}
}

// textRoom is the width of a column of texts: they share the room beside the labels and the numbers.
func (g *grid) textRoom(width int) int {
	room, columns := width-min(g.columnWidth(0), usualLabel), 0
	for c := 1; c < len(g.rows[0]); c++ {
		room -= g.gap()
		if g.left[c] {
			columns++
		} else {
			room -= g.columnWidth(c)
		}
	}
	return max(leastText, room/max(1, columns))
}

// breakHeading breaks the heading of a column that is wider than the values. No word of it is broken.
func (g *grid) breakHeading(c int) {
	heading := g.rows[0][c]
	if len(heading) != 1 {
		return
	}
	text := heading[0].Text
	marks := utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimRight(text, " "))
	g.rows[0][c] = nil
	values := max(g.columnWidth(c)-marks, min(utf8.RuneCountInString(text)-marks, roomyHeading))
	for _, word := range strings.Fields(text) {
		values = max(values, utf8.RuneCountInString(word))
	}
	g.rows[0][c] = brokenSpan(heading[0], values, 0)
	for i := range g.rows[0][c] {
		g.rows[0][c][i].Text += blanks(marks)
	}
}

// brokenSpan breaks a piece of text at spaces into lines of at most a width. Lines below the first are indented.
func brokenSpan(s document.Span, width, indented int) document.Cell {
	return joined(s, strings.Fields(s.Text), width, indented)
}

// brokenEntry is brokenSpan for an entry of a listing. It breaks after commas alone if that takes no more lines: "containerd 1.6, runsc version 3" has its
// break between the two programs.
func brokenEntry(s document.Span, width int) document.Cell {
	words := brokenSpan(s, width, 0)
	parts := strings.SplitAfter(s.Text, ", ")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	phrases := joined(s, parts, width, 0)
	isWide := func(line document.Span) bool { return utf8.RuneCountInString(line.Text) > width }
	if len(phrases) > len(words) || slices.ContainsFunc(phrases, isWide) {
		return words
	}
	return phrases
}

// joined writes the parts of a piece of text into lines of at most a width.
func joined(s document.Span, parts []string, width, indented int) document.Cell {
	lead := blanks(utf8.RuneCountInString(s.Text) - utf8.RuneCountInString(strings.TrimLeft(s.Text, " ")))
	var out document.Cell
	line := lead
	flush := func() {
		out = append(out, document.Span{Text: line, Tone: s.Tone, Link: s.Link})
		line = lead + blanks(indented)
	}
	for _, word := range parts {
		switch start := strings.TrimSpace(line) == ""; {
		case start:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			flush()
			line += word
		}
	}
	flush()
	return out
}
