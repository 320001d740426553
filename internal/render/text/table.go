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
	// prose is set if lines of cells may break. left marks the columns of texts in it.
	prose bool
	left  map[int]bool
	// broken is set if cells of a listing were broken.
	broken bool
	// widths are the widths of the columns, as soon as they are known.
	widths map[int]int
}

func newGrid(t *document.Table) grid {
	g := grid{listing: t.Listing, headed: true, prose: t.Prose, left: map[int]bool{}}
	for _, row := range t.Rows {
		cells := make([]document.Cell, len(row))
		for c, cell := range row {
			for _, span := range cell {
				span.Text = clean(span.Text)
				cells[c] = append(cells[c], span)
			}
		}
		g.rows = append(g.rows, cells)
	}
	lead := ""
	for r := range g.rows {
		switch row := g.rows[r]; {
		case g.group(r):
			lead = ""
			if len(row[0]) > 0 && row[0][0].Text != "" {
				lead = indent
			}
		case len(row) > 0:
			for i := range row[0] {
				row[0][i].Text = lead + row[0][i].Text
			}
		}
	}
	if !g.listing {
		g.alignPoints()
	}
	return g
}

// group reports whether a row is the heading of the rows below it.
func (g *grid) group(r int) bool {
	return g.headed && r > 0 && len(g.rows[r]) == 1 && len(g.rows[0]) > 1
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
	if g.listing || g.prose {
		return gapOfTexts
	}
	return gapOfNumbers
}

func (g grid) columnWidth(c int) int {
	if width, found := g.widths[c]; found {
		return width
	}
	width := 0
	for r, row := range g.rows {
		if c < len(row) && !g.group(r) {
			for _, span := range row[c] {
				width = max(width, utf8.RuneCountInString(span.Text))
			}
		}
	}
	return width
}

// measure keeps the widths of all columns, which no longer change. Otherwise each row would read all others again.
func (g *grid) measure() {
	widths := map[int]int{}
	for c := range g.rows[0] {
		widths[c] = g.columnWidth(c)
	}
	g.widths = widths
}

// parts splits the columns into parts that fit into width: the first column, and at least one of the others.
func (g grid) parts(width int) [][]int {
	var parts [][]int
	part := []int{0}
	sum := g.columnWidth(0)
	for c := 1; c < len(g.rows[0]); c++ {
		need := g.gap() + g.columnWidth(c)
		if len(part) > 1 && sum+need > width {
			parts = append(parts, part)
			part, sum = []int{0}, g.columnWidth(0)
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
	if t.Turns && !slices.ContainsFunc(g.rows, func(row []document.Cell) bool { return len(row) == 1 }) {
		if turned := g.turned(); len(g.parts(width)) > 1 && len(turned.parts(width)) <= len(g.parts(width)) {
			g = turned
		}
	}
	if g.listing {
		for _, cell := range g.rows[0] { // like the other listings of the program
			for i := range cell {
				cell[i].Text = strings.ToUpper(cell[i].Text)
			}
		}
		p.line("")
		p.records(g, width)
		return
	}
	if g.prose {
		g.breakLines(width)
	}
	g.measure()
	for _, part := range g.parts(width) {
		p.line("")
		for r := range g.rows {
			p.row(g, r, part)
		}
	}
}

// row writes the lines of a row, with some of its columns.
func (p *printer) row(g grid, r int, columns []int) {
	if g.group(r) {
		text := ""
		if cell := g.rows[r][0]; len(cell) > 0 {
			text = cell[0].Text
		}
		p.wrapped(bold, p.margin, text)
		return
	}
	height := 1
	for _, c := range columns {
		if c < len(g.rows[r]) {
			for i, span := range g.rows[r][c] {
				if span.Text != "" {
					height = max(height, i+1)
				}
			}
		}
	}
	for i := range height {
		if g.prose && r == 0 && g.empty(columns, i) { // another part has a heading of more lines
			continue
		}
		line := p.margin
		for place, c := range columns {
			var span document.Span
			if c < len(g.rows[r]) && i < len(g.rows[r][c]) {
				span = g.rows[r][c][i]
			}
			st := styles[span.Tone]
			switch {
			case g.headed && r == 0 && (i < 2 || g.prose):
				st = bold
			case i > 1 && !g.prose && !g.broken:
				st = dim
			}
			right, width := place > 0 && !g.listing && !g.left[c], g.columnWidth(c)
			switch {
			case right:
				width += g.gap()
			case place > 0:
				line += strings.Repeat(" ", g.gap())
			}
			line += p.padded(span.Text, width, st, right)
		}
		p.line(line)
	}
}

// empty reports whether some columns have no heading in a line.
func (g *grid) empty(columns []int, line int) bool {
	return !slices.ContainsFunc(columns, func(c int) bool { return line < len(g.rows[0][c]) && g.rows[0][c][line].Text != "" })
}

// padded fills s up with blanks, which are not styled.
func (p *printer) padded(s string, width int, st style, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return blanks + p.styled(s, st)
	}
	return p.styled(s, st) + blanks
}

// The usual and the least width of the plot of a course in characters.
const (
	plotWidth = 32
	leastPlot = 8
)

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
		g.rows = append(g.rows, append(row, document.Cell{{}}, document.Cell{{Text: clean(point.Remark), Tone: document.Faint}}))
	}
	if len(g.rows) == 0 {
		return
	}
	natural, _ := g.extents()
	plot := len(natural) - 2
	width := min(plotWidth, max(leastPlot, p.width-len(p.margin)-total(natural)-2))
	columns := indices(len(natural))
	for i, point := range c.Points {
		g.rows[i][plot][0].Text = dot(point.Value, low, high, width)
	}
	g.measure()
	next := 0
	for i := range g.rows {
		for ; next < len(c.Breaks) && c.Breaks[next].Index == i; next++ {
			p.wrapped(bold, p.margin+"── change: ", c.Breaks[next].Text)
			for _, line := range c.Breaks[next].Lines {
				p.wrapped(plain, p.margin+"   ", line)
			}
		}
		p.row(g, i, columns)
	}
}

// dot places a dot between the smallest and the largest value.
func dot(value, low, high float64, width int) string {
	place := 0
	if high > low {
		place = int((value - low) / (high - low) * float64(width-1))
	}
	return "│" + blanks(place) + "●" + blanks(width-1-place) + "│"
}
