package document_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// TestNewMatrix: rows of a group are adjacent, the first entry of a place counts, and a place without an entry has the gap.
func TestNewMatrix(t *testing.T) {
	entry := func(group, row, column, text string) document.MatrixEntry {
		cell := document.Cell{{Text: text}}
		return document.MatrixEntry{Row: document.MatrixRow{ID: row, Group: document.Span{Text: group}}, Column: column, Value: cell, MatrixCell: document.MatrixCell{Factor: cell}}
	}
	m := document.NewMatrix([]document.MatrixEntry{
		entry("one", "a", "x", "ax"), entry("two", "b", "x", "bx"), entry("one", "c", "y", "cy"), entry("one", "a", "x", "another"),
	}, document.Cell{{Text: "gap"}})
	var got [][]string
	for i, row := range m.Rows {
		texts := []string{row.ID}
		for c := range m.Columns {
			cell := m.Baselines[0].Cells[i][c]
			if cell.Factor[0].Text != row.Values[c][0].Text || cell.Difference != nil {
				t.Errorf("row %s has the value %v, the factor %v and the difference %v", row.ID, row.Values[c], cell.Factor, cell.Difference)
			}
			texts = append(texts, cell.Factor[0].Text)
		}
		got = append(got, texts)
	}
	if diff := cmp.Diff([][]string{{"a", "ax", "gap"}, {"c", "gap", "cy"}, {"b", "bx", "gap"}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x", "y"}, m.Columns); diff != "" {
		t.Error(diff)
	}
}
