package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/paper"
)

const (
	// roomyHeading is a width: a shorter heading is not broken.
	roomyHeading = 7
	// widestText is the width of a column of texts.
	widestText = 36
)

// leastLabel is the least width of labels beside all columns, and usualLabel their greatest width if the columns do not fit.
const (
	leastLabel = 20
	usualLabel = 34
)

// plainNumber matches a printed value whose decimal point is aligned, also with its unit.
var plainNumber = regexp.MustCompile(`^(?:[<>≤≥≈] )?[0-9,]+((?:\.[0-9]+)?(?: [^ ]+)?)$`)

// printPaperTable writes a table in the paper's layout. The columns of a table that is wider than the terminal continue below, with the
// labels again.
func printPaperTable(w io.Writer, width int, t paper.Table) {
	if width <= 0 {
		width = usualWidth
	}
	g := gridOf(t)
	printWrapped(w, width, "", t.Name+": "+t.Title)
	printWrapped(w, width, "  ", g.caption(t))
	var columns []textColumn
	rest := width
	for c := range g.headings {
		columns = append(columns, g.column(c))
		rest -= 2 + columns[c].width
	}
	if rest < leastLabel { // the columns continue below
		rest = usualLabel
	}
	labels := g.wrappedLabels(rest)
	labelWidth := 0
	for _, lines := range labels {
		for _, line := range lines {
			labelWidth = max(labelWidth, length(line))
		}
	}
	for first := 0; first < len(columns); {
		end, total := first, labelWidth
		for end < len(columns) && (end == first || total+2+columns[end].width <= width) {
			total += 2 + columns[end].width
			end++
		}
		fmt.Fprintln(w)
		g.printColumns(w, labels, labelWidth, columns[first:end])
		first = end
	}
	for i, line := range g.remarks.lines() {
		if i == 0 {
			fmt.Fprintln(w)
		}
		printWrapped(w, width, "  ", line)
	}
}

func (g paperGrid) printColumns(w io.Writer, labels [][]string, labelWidth int, columns []textColumn) {
	height := 0
	for _, c := range columns {
		height = max(height, len(c.heading))
	}
	for i := range height {
		var texts []string
		for _, c := range columns {
			text := ""
			if above := height - len(c.heading); i >= above {
				text = c.heading[i-above]
			}
			if !c.left {
				text = padLeft(text, c.width-c.marks)
			}
			texts = append(texts, padRight(text, c.width))
		}
		printCells(w, "", labelWidth, texts)
	}
	group := ""
	for r, lines := range labels {
		if g.groups[r] != group {
			group = g.groups[r]
			fmt.Fprintln(w, group)
		}
		height := len(lines)
		for _, c := range columns {
			height = max(height, len(c.cells[r]))
		}
		for i := range height {
			var texts []string
			for _, c := range columns {
				texts = append(texts, padRight(lineOf(c.cells[r], i), c.width))
			}
			printCells(w, lineOf(lines, i), labelWidth, texts)
		}
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func printCells(w io.Writer, label string, labelWidth int, texts []string) {
	fmt.Fprintln(w, strings.TrimRight(padRight(label, labelWidth)+"  "+strings.Join(texts, "  "), " "))
}

// wrappedLabels returns the lines of each label, of at most a width. Labels of a group are indented.
func (g paperGrid) wrappedLabels(width int) [][]string {
	indent := "  "
	var labels [][]string
	for r, label := range g.labels {
		lead := indent
		if g.groups[r] != "" {
			lead += indent
		}
		var lines []string
		for i, line := range wrap(label, width-length(lead+indent), width-length(lead+indent)) {
			if i == 1 {
				lead += indent
			}
			lines = append(lines, lead+line)
		}
		labels = append(labels, lines)
	}
	return labels
}

// textColumn is a column with the lines of each cell.
type textColumn struct {
	heading []string
	cells   [][]string
	left    bool // a column without numbers
	width   int
	marks   int // the width of the marks after the values
}

// column aligns the values of a column at the decimal point, and breaks long texts.
func (g paperGrid) column(c int) textColumn {
	var column textColumn
	whole, fraction, text := 0, 0, 0
	column.left = true
	for _, row := range g.cells {
		cell := row[c]
		column.marks = max(column.marks, length(cell.mark))
		if n := plainNumber.FindStringSubmatch(cell.text); n != nil {
			whole = max(whole, length(cell.text)-length(n[1]))
			fraction = max(fraction, length(n[1]))
			column.left = false
			continue
		}
		for _, line := range wrap(cell.text, widestText, widestText) {
			text = max(text, length(line))
		}
	}
	values := max(whole+fraction, text, min(length(g.headings[c]), roomyHeading))
	for _, word := range strings.Fields(g.headings[c]) {
		values = max(values, length(word))
	}
	column.heading = wrap(g.headings[c], values, values)
	column.width = values + column.marks
	for _, row := range g.cells {
		cell, end := row[c], values
		if n := plainNumber.FindStringSubmatch(cell.text); n != nil {
			end -= fraction - length(n[1])
		}
		lines := wrap(cell.text, widestText, widestText)
		for i, line := range lines {
			if !column.left {
				lines[i] = padLeft(line, end)
			}
		}
		lines[len(lines)-1] += cell.mark
		column.cells = append(column.cells, lines)
	}
	return column
}

func padLeft(s string, width int) string { return strings.Repeat(" ", max(0, width-length(s))) + s }

func padRight(s string, width int) string { return s + strings.Repeat(" ", max(0, width-length(s))) }
