package text

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// The numbers of blanks between columns.
const (
	gapOfNumbers = 3
	gapOfTexts   = 2
)

// grid is the cells of a table with clean text.
type grid struct {
	rows    [][]document.Cell
	listing bool
	// headed is set if the first row is the heading of the columns.
	headed bool
}

func newGrid(t *document.Table) grid {
	g := grid{listing: t.Listing, headed: true}
	for r, row := range t.Rows {
		cells := make([]document.Cell, len(row))
		for c, cell := range row {
			for _, span := range cell {
				span.Text = clean(span.Text)
				if r == 0 && t.Listing { // like the other listings of the program
					span.Text = strings.ToUpper(span.Text)
				}
				cells[c] = append(cells[c], span)
			}
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// turned exchanges rows and columns.
func (g grid) turned() grid {
	out := grid{rows: make([][]document.Cell, len(g.rows[0])), listing: g.listing, headed: g.headed}
	for _, row := range g.rows {
		for c, cell := range row {
			out.rows[c] = append(out.rows[c], cell)
		}
	}
	return out
}

func (g grid) gap() int {
	if g.listing {
		return gapOfTexts
	}
	return gapOfNumbers
}

func (g grid) columnWidth(c int) int {
	width := 0
	for _, row := range g.rows {
		if c < len(row) {
			for _, span := range row[c] {
				width = max(width, utf8.RuneCountInString(span.Text))
			}
		}
	}
	return width
}

// parts splits the columns behind the first into parts that fit into width, with at least one column each. A listing has one part: its rows
// are records, and a part of a record is hard to read.
func (g grid) parts(width int) [][]int {
	var parts [][]int
	var part []int
	sum := g.columnWidth(0)
	for c := 1; c < len(g.rows[0]); c++ {
		need := g.gap() + g.columnWidth(c)
		if len(part) > 0 && sum+need > width && !g.listing {
			parts = append(parts, part)
			part, sum = nil, g.columnWidth(0)
		}
		part = append(part, c)
		sum += need
	}
	return append(parts, part)
}

func (p *printer) table(t *document.Table) {
	if len(t.Rows) == 0 || len(t.Rows[0]) == 0 {
		return
	}
	g, width := newGrid(t), p.width-len(p.margin)
	if t.Turns {
		if turned := g.turned(); len(g.parts(width)) > 1 && len(turned.parts(width)) <= len(g.parts(width)) {
			g = turned
		}
	}
	for _, part := range g.parts(width) {
		p.line("")
		for r := range g.rows {
			p.row(g, r, part)
		}
	}
}

// row writes the lines of a row, with some of its columns.
func (p *printer) row(g grid, r int, part []int) {
	columns := append([]int{0}, part...)
	height := 1
	for _, c := range columns {
		if c < len(g.rows[r]) {
			height = max(height, len(g.rows[r][c]))
		}
	}
	for i := range height {
		line := p.margin
		for _, c := range columns {
			var span document.Span
			if c < len(g.rows[r]) && i < len(g.rows[r][c]) {
				span = g.rows[r][c][i]
			}
			st := styles[span.Tone]
			switch {
			case g.headed && r == 0 && i < 2:
				st = bold
			case i > 1:
				st = dim
			}
			if c > 0 && g.listing {
				line += strings.Repeat(" ", g.gap())
			}
			width := g.columnWidth(c)
			if c > 0 && !g.listing {
				width += g.gap()
			}
			line += p.padded(span.Text, width, st, c > 0 && !g.listing)
		}
		p.line(line)
	}
}

// padded fills s up with blanks, which are not styled.
func (p *printer) padded(s string, width int, st style, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return blanks + p.styled(s, st)
	}
	return p.styled(s, st) + blanks
}

// plotWidth is the width of the plot of a course in characters.
const plotWidth = 32

// course writes a line for each point, with a dot between the smallest and the largest value, and the breaks between the lines.
func (p *printer) course(c *document.Course) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, point := range c.Points {
		low, high = min(low, point.Value), max(high, point.Value)
	}
	g := grid{listing: true}
	for _, point := range c.Points {
		var row []document.Cell
		for _, text := range append(slices.Clone(point.Labels), point.Text) {
			row = append(row, document.Cell{{Text: clean(text)}})
		}
		row = append(row, document.Cell{{Text: dot(point.Value, low, high)}}, document.Cell{{Text: clean(point.Remark), Tone: document.Faint}})
		g.rows = append(g.rows, row)
	}
	next := 0
	for i := range g.rows {
		for ; next < len(c.Breaks) && c.Breaks[next].Index == i; next++ {
			p.wrapped(bold, p.margin+"── change: ", c.Breaks[next].Text)
			for _, line := range c.Breaks[next].Lines {
				p.wrapped(plain, p.margin+"   ", line)
			}
		}
		p.row(g, i, g.parts(p.width)[0])
	}
}

// dot places a dot between the smallest and the largest value.
func dot(value, low, high float64) string {
	place := 0
	if high > low {
		place = int((value - low) / (high - low) * (plotWidth - 1))
	}
	return "│" + strings.Repeat(" ", place) + "●" + strings.Repeat(" ", plotWidth-1-place) + "│"
}
