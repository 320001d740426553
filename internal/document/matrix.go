package document

import (
	"cmp"
	"math"
	"slices"
)

// Matrix is a table of numbers, in most answers with a row for each metric and a column for each target. The reader of a page chooses the baseline, the rows, the
// columns and the kind of number.
type Matrix struct {
	// RowNoun and ColumnNoun name the rows and the columns, in the plural. They are "metrics" and "targets" if they are empty.
	RowNoun, ColumnNoun string
	Columns             []string
	Rows                []MatrixRow
	// Baselines are the choices. The first one is shown at first, and by formats without a choice.
	Baselines []MatrixBaseline
}

// MatrixRow is a metric of a benchmark.
type MatrixRow struct {
	// ID is stable from one version to the next: "operations.container.lifecycle/CreateAndRun".
	ID, Suite string
	// Group is the heading of adjacent rows.
	Group Span
	Name  Cell
	// Rest is set for a row that a page shows on request, and other formats leave out.
	Rest bool
	// Values are by column. A page offers no values if none of them has a text.
	Values []Cell
}

// MatrixBaseline is the comparison of all cells with a baseline.
type MatrixBaseline struct {
	Name string
	// Cells are by row and by column.
	Cells [][]MatrixCell
}

// MatrixCell is a cell compared with a baseline.
type MatrixCell struct {
	Factor Cell
	// Difference may be nil. A page offers no differences if all are.
	Difference Cell
	// Size is the logarithm of the ratio, positive if the target is worse. It is NaN without a ratio.
	Size float64
	// Shown is set for a shown difference.
	Shown bool
}

// MatrixEntry is a cell with its place.
type MatrixEntry struct {
	// Row is without values.
	Row    MatrixRow
	Column string
	Value  Cell
	MatrixCell
}

// NewMatrix arranges entries in rows and columns in the order of their first occurrences. Rows of a group are adjacent. The first entry of a place counts, and a
// place without one has the gap. The baseline has no name.
func NewMatrix(entries []MatrixEntry, gap Cell) Matrix {
	var m Matrix
	var groups []string
	places := map[[2]string]*MatrixEntry{}
	hasValues, hasDifferences := false, false
	for i := range entries {
		e := &entries[i]
		if place := [2]string{e.Row.ID, e.Column}; places[place] == nil {
			places[place] = e
		}
		if !slices.Contains(groups, e.Row.Group.Text) {
			groups = append(groups, e.Row.Group.Text)
		}
		if !slices.Contains(m.Columns, e.Column) {
			m.Columns = append(m.Columns, e.Column)
		}
		if !slices.ContainsFunc(m.Rows, func(r MatrixRow) bool { return r.ID == e.Row.ID }) {
			m.Rows = append(m.Rows, e.Row)
		}
		hasValues, hasDifferences = hasValues || e.Value != nil, hasDifferences || e.Difference != nil
	}
	group := func(r MatrixRow) int { return slices.Index(groups, r.Group.Text) }
	slices.SortStableFunc(m.Rows, func(a, b MatrixRow) int { return cmp.Compare(group(a), group(b)) })
	missing := MatrixEntry{MatrixCell: MatrixCell{Factor: gap, Size: math.NaN()}}
	if hasValues {
		missing.Value = gap
	}
	if hasDifferences {
		missing.Difference = gap
	}
	baseline := MatrixBaseline{}
	for i := range m.Rows {
		var cells []MatrixCell
		for _, column := range m.Columns {
			e := cmp.Or(places[[2]string{m.Rows[i].ID, column}], &missing)
			m.Rows[i].Values, cells = append(m.Rows[i].Values, e.Value), append(cells, e.MatrixCell)
		}
		baseline.Cells = append(baseline.Cells, cells)
	}
	m.Baselines = []MatrixBaseline{baseline}
	return m
}

// Strength is the strength of the colour of a shown difference, by the logarithm of its ratio.
func Strength(ratio float64) int {
	size := max(ratio, 1/ratio)
	for i, limit := range []float64{1.1, 1.5, 4, 20} {
		if size < limit {
			return i + 1
		}
	}
	return 5
}

// Table is the matrix as a table, for a format without choices.
func (m *Matrix) Table() *Table {
	head := []Cell{nil}
	for _, name := range m.Columns {
		head = append(head, Cell{{Text: name}})
	}
	t := &Table{Rows: [][]Cell{head}}
	var group Span
	for i, r := range m.Rows {
		if r.Rest {
			continue
		}
		if r.Group != group {
			group = r.Group
			t.Rows = append(t.Rows, []Cell{{group}})
		}
		row := []Cell{r.Name}
		for _, c := range m.Baselines[0].Cells[i] {
			row = append(row, c.Factor)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
