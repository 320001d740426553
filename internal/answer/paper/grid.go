package paper

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/paper"
)

// unmeasured lists the reasons for values that Touchstone does not measure, each once, with the rows or columns that have it.
func unmeasured(t paper.Table) []string {
	var reasons []string
	names := map[string][]string{}
	isWhole := true
	for r, row := range t.Rows {
		for c, cell := range row.Cells {
			reason := t.OfCell(r, c).Unmeasured
			if reason == "" || cell.Printed == "" {
				isWhole = isWhole && cell.Printed == ""
				continue
			}
			name := row.Label
			if t.Columns[c].Of.Unmeasured == reason {
				name = t.Columns[c].Heading
			}
			if len(names[reason]) == 0 {
				reasons = append(reasons, reason)
			}
			if !slices.Contains(names[reason], name) {
				names[reason] = append(names[reason], name)
			}
		}
	}
	if len(reasons) == 1 && isWhole {
		return reasons
	}
	for i, reason := range reasons {
		reasons[i] = strings.Join(names[reason], "; ") + ": " + reason
	}
	return reasons
}

// grid is a table as texts: the units are at the shortest place.
type grid struct {
	Headings []string
	Groups   []string // of each row, empty for a row without a group
	Labels   []string
	Cells    [][]gridCell
	// Caption describes the table below its title.
	Caption string

	// Flags are the notes of cells, in the order of their marks, and Notes the notes of the table.
	Flags, Notes []string

	unit string // the unit of all values
}

// gridCell is a value as it is printed, with the mark of its note.
type gridCell struct{ Text, Mark string }

// newGrid gives the texts of a table.
func newGrid(t paper.Table) grid {
	g := grid{Notes: slices.Clone(t.Notes)}
	for _, reason := range unmeasured(t) {
		g.Notes = append(g.Notes, "not measured by Touchstone: "+reason)
	}
	unitOf := func(r, c int) string {
		if !hasNumber(t.Rows[r].Cells[c]) {
			return ""
		}
		return t.OfCell(r, c).Unit
	}
	var units unitSet
	texts := false
	rows, columns := make([]unitSet, len(t.Rows)), make([]unitSet, len(t.Columns))
	for r := range t.Rows {
		for c := range t.Columns {
			units.add(unitOf(r, c))
			texts = texts || strings.ContainsFunc(t.Rows[r].Cells[c].Printed, unicode.IsLetter)
			rows[r].add(unitOf(r, c))
			columns[c].add(unitOf(r, c))
		}
	}
	isOne := func(u unitSet) bool { return len(u) <= 1 }
	inRows, inColumns := false, false
	switch {
	case isOne(units):
		g.unit = units.only()
	case !texts && !slices.ContainsFunc(rows, func(u unitSet) bool { return !isOne(u) }):
		inRows = true
	case !slices.ContainsFunc(columns, func(u unitSet) bool { return !isOne(u) }):
		inColumns = true
	}
	for c, column := range t.Columns {
		g.Headings = append(g.Headings, withUnit(column.Heading, columns[c], inColumns))
	}
	for r, row := range t.Rows {
		g.Groups = append(g.Groups, row.Group)
		g.Labels = append(g.Labels, withUnit(row.Label, rows[r], inRows))
		var cells []gridCell
		for c, cell := range row.Cells {
			text := cell.Printed
			if unit := unitOf(r, c); unit != "" && g.unit == "" && !inRows && !inColumns {
				text += " " + unit
			}
			cells = append(cells, gridCell{text, g.mark(cell.Flag)})
		}
		g.Cells = append(g.Cells, cells)
	}
	g.Caption = g.caption(t)
	return g
}

// mark returns the mark of a cell, and keeps its note. Equal notes have one mark.
func (g *grid) mark(flag string) string {
	if flag == "" {
		return ""
	}
	i := slices.Index(g.Flags, flag)
	if i < 0 {
		i = len(g.Flags)
		g.Flags = append(g.Flags, flag)
	}
	return noteMark(i)
}

// noteMark is the mark of the flag with an index.
func noteMark(flag int) string { return fmt.Sprintf("[%d]", flag+1) }

// unitSet is a set of units.
type unitSet []string

func (u *unitSet) add(unit string) {
	if unit != "" && !slices.Contains(*u, unit) {
		*u = append(*u, unit)
	}
}

func (u unitSet) only() string {
	if len(u) == 1 {
		return u[0]
	}
	return ""
}

// withUnit appends the only unit to a label that does not have it.
func withUnit(label string, units unitSet, show bool) string {
	unit := units.only()
	if !show || unit == "" || strings.Contains(label, "("+unit+")") || strings.HasSuffix(label, "/ "+unit) || strings.EqualFold(label, unit) {
		return label
	}
	return label + " (" + unit + ")"
}

func (g grid) caption(t paper.Table) string {
	caption := t.Place
	if g.unit != "" {
		caption += "; unit: " + g.unit
	}
	if t.Reference != "" {
		caption += "; compared with " + t.Reference
	}
	return caption
}
