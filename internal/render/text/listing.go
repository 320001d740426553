package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
)

const (
	// hanging is the indentation of the columns that continue below the others.
	hanging = "    "
	// shortText is the length of a text that is not broken: a date with its time has 19 characters.
	shortText = 20
)

// Listing writes records below a header, in lines of at most a width; 0 stands for 100. A row of one cell is the heading of the rows below it.
func Listing(w io.Writer, header []string, rows [][]string, width int) error {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells(header...)}}
	for _, row := range rows {
		t.Rows = append(t.Rows, document.Cells(row...))
	}
	p := newPrinter(Options{Width: width})
	p.records(newGrid(&t), p.width)
	_, err := io.WriteString(w, p.out.String())
	if err != nil {
		return fmt.Errorf("write the listing: %w", err)
	}
	return nil
}

// records writes the rows of a listing. A row is not divided between two tables, because a part of a record is hard to read: its cells are broken at
// spaces, or its last columns continue on the next line.
func (p *printer) records(g grid, width int) {
	lines := g.fit(width)
	g.measure()
	outer := p.margin
	for r := range g.rows {
		for i, columns := range lines {
			if i > 0 {
				if g.group(r) {
					break
				}
				p.margin = outer + hanging
			}
			p.row(g, r, columns)
		}
		p.margin = outer
	}
}

// fit breaks the cells of a listing so that a row fits into lines of a width, and returns the columns of each line. It selects the
// division with the fewest lines that fits, or that is the least too wide.
func (g *grid) fit(width int) [][]int {
	natural, narrowest := g.extents()
	columns := indices(len(natural))
	if total(natural) <= width {
		return [][]int{columns}
	}
	var best [][]int
	var bestWidths []int
	bestExcess, bestHeight := 0, 0
	for first := len(columns); first > 0; first-- {
		lines := [][]int{columns[:first]}
		widths := share(natural[:first], narrowest[:first], width)
		excess := max(0, total(widths)-width)
		room := width - len(hanging)
		for start := first; start < len(columns); {
			end := start + 1
			for end < len(columns) && total(narrowest[start:end+1]) <= room {
				end++
			}
			rest := share(natural[start:end], narrowest[start:end], room)
			excess = max(excess, total(rest)-room)
			lines, widths = append(lines, columns[start:end]), append(widths, rest...)
			start = end
		}
		height := g.height(widths, lines)
		if best == nil || excess < bestExcess || excess == bestExcess && height < bestHeight {
			best, bestWidths, bestExcess, bestHeight = lines, widths, excess, height
		}
	}
	for r, row := range g.rows {
		for c := range row {
			if !g.group(r) && len(row[c]) == 1 && utf8.RuneCountInString(row[c][0].Text) > bestWidths[c] {
				row[c] = brokenEntry(row[c][0], bestWidths[c])
				g.broken = true
			}
		}
	}
	return best
}

// indices are the numbers of some columns from the first.
func indices(count int) []int {
	columns := make([]int, count)
	for c := range columns {
		columns[c] = c
	}
	return columns
}

// extents returns the widths of the columns, and their least widths if cells are broken at spaces.
func (g *grid) extents() (natural, narrowest []int) {
	natural, narrowest = make([]int, len(g.rows[0])), make([]int, len(g.rows[0]))
	for r, row := range g.rows {
		for c := range row {
			if g.group(r) {
				continue
			}
			for _, span := range row[c] {
				length := utf8.RuneCountInString(span.Text)
				natural[c] = max(natural[c], length)
				if len(row[c]) > 1 || length <= shortText { // lines with a meaning, or a text like a date
					narrowest[c] = max(narrowest[c], length)
				}
				margin := length - utf8.RuneCountInString(strings.TrimLeft(span.Text, " "))
				for word := range strings.FieldsSeq(span.Text) {
					narrowest[c] = max(narrowest[c], margin+utf8.RuneCountInString(word))
				}
			}
		}
	}
	return natural, narrowest
}

// height is the number of lines of all rows in columns of these widths.
func (g *grid) height(widths []int, lines [][]int) int {
	sum := 0
	for r, row := range g.rows {
		if g.group(r) {
			continue
		}
		for _, columns := range lines {
			height := 1
			for _, c := range columns {
				if c >= len(row) {
					continue
				}
				count := len(row[c])
				if count == 1 && utf8.RuneCountInString(row[c][0].Text) > widths[c] {
					count = len(brokenSpan(row[c][0], widths[c], 0))
				}
				height = max(height, count)
			}
			sum += height
		}
	}
	return sum
}

// share divides a width among columns: the widest ones give way, down to their least widths.
func share(natural, narrowest []int, width int) []int {
	widths := slices.Clone(natural)
	for limit := slices.Max(natural); limit > 0 && total(widths) > width; limit-- {
		for c := range widths {
			widths[c] = max(narrowest[c], min(natural[c], limit))
		}
	}
	return widths
}

// total is the width of columns with the gaps between them.
func total(widths []int) int {
	sum := gapOfTexts * (len(widths) - 1)
	for _, width := range widths {
		sum += width
	}
	return sum
}
