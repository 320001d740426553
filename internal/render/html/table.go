package html

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// longLine is a number of characters. A line of a cell may break if it is at least as long. A shorter one, such as a number with its unit, stays whole.
const longLine = 28

// mostNarrow is the largest number of columns of a table on a printed page.
const mostNarrow = 8

type table struct {
	Class, Region string
	// Head is absent if no column has a heading.
	Head []cell
	// Heads are the plain headings of a table that is too wide for a printed page. Its cells stand below each other there, each with its heading.
	Heads []string
	Rows  []row
}

// row is a row of cells. Group is set for the heading of the rows below it, which is as wide as the table.
type row struct {
	Cells []cell
	Group bool
	Width int
}

type cell struct {
	Class string
	// Span is the number of its columns.
	Span  int
	Lines []span
}

// table converts a table. It returns nil for a table without columns.
func (b *builder) table(t *document.Table) *table {
	if len(t.Rows) == 0 || len(t.Rows[0]) == 0 {
		return nil
	}
	width := 0
	for _, r := range t.Rows {
		width = max(width, len(r))
	}
	out := &table{Class: "numbers", Region: b.region()}
	if width > mostNarrow {
		out.Heads = headings(t.Rows[0], width)
	}
	if t.Listing {
		out.Class = "listing"
	}
	for i, r := range t.Rows {
		if i > 0 && len(r) == 1 && width > 1 {
			out.Rows = append(out.Rows, row{Cells: []cell{b.cell(r[0])}, Group: true, Width: width})
			continue
		}
		cells := make([]cell, width)
		if i > 0 && len(r) > 1 {
			cells = cells[:len(r)]
			cells[len(r)-1].Span = width - len(r) + 1
		}
		for c, source := range r {
			span := cells[c].Span
			cells[c] = b.cell(source)
			cells[c].Span = span
		}
		for c := range cells {
			if c > 0 && !t.Listing && !numeric(t.Rows[1:], c) {
				cells[c].Class = strings.TrimSpace("text " + cells[c].Class)
			}
		}
		switch {
		case i > 0:
			out.Rows = append(out.Rows, row{Cells: cells})
		case slices.ContainsFunc(cells, func(c cell) bool { return c.Lines != nil }):
			out.Head = cells
		}
	}
	return out
}

// cell converts a cell. A cell without text has no lines, because a screen reader reads an empty heading. An empty line has no height, except the first.
func (b *builder) cell(c document.Cell) cell {
	if !slices.ContainsFunc(c, func(s document.Span) bool { return s.Text != "" }) {
		return cell{}
	}
	var out cell
	var names []string
	for i, s := range c {
		if i > 0 && s.Text == "" {
			continue
		}
		if utf8.RuneCountInString(s.Text) >= longLine && !slices.Contains(names, "long") {
			names = append(names, "long")
		}
		switch {
		case s.Strength > 0 && s.Tone == document.Good:
			names = append(names, fmt.Sprintf("heat b%d", s.Strength))
		case s.Strength > 0 && s.Tone == document.Bad:
			names = append(names, fmt.Sprintf("heat w%d", s.Strength))
		case s.Tone == document.Alarm:
			names = append(names, "breach")
		}
		out.Lines = append(out.Lines, b.span(s))
	}
	out.Class = strings.Join(names, " ")
	return out
}

// numeric reports whether a column has a number.
func numeric(rows [][]document.Cell, c int) bool {
	return slices.ContainsFunc(rows, func(r []document.Cell) bool {
		return c < len(r) && len(r[c]) > 0 && strings.IndexAny(strings.TrimLeft(r[c][0].Text, "<>≤≥≈±+−-!( "), "0123456789") == 0
	})
}

// headings are the first lines of the headings of columns.
func headings(head []document.Cell, width int) []string {
	names := make([]string, width)
	for i, c := range head {
		if len(c) > 0 {
			names[i] = c[0].Text
		}
	}
	return names
}
