package document

// Matrix is a table of numbers with a row for each metric and a column for each target. The reader of a page chooses the baseline, the rows, the columns and
// the kind of number.
type Matrix struct {
	// Columns are the names of the targets.
	Columns []string
	Rows    []MatrixRow
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
	// Values are by column.
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
	Factor, Difference Cell
	// Size is the logarithm of the ratio, positive if the target is worse. It is NaN without a ratio.
	Size float64
	// Shown is set for a shown difference.
	Shown bool
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
