package html

import (
	"cmp"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// matrix is a table whose cells the script of the page fills in for the choices of the reader. It is complete without the script.
type matrix struct {
	Region          string
	Targets, Suites []string
	// Legend is the noun of the columns with a capital letter.
	Legend string
	// Baselines are the choices. HasRest is set if some rows show on request, HasValues and HasDifferences if the cells have other numbers than ratios.
	Baselines                          []string
	HasRest, HasValues, HasDifferences bool
	Width                              int
	Rows                               []matrixRow
	// Heads are the headings in the printed cells of a matrix that is too wide for a printed page.
	Heads []string
	Data  matrixData
}

// matrixRow is the heading of a group, or a row with its index in Data.
type matrixRow struct {
	Group *span
	Index int
	Rest  bool
	// Above names the group. A row that the reader has moved away from its heading shows it.
	Above string
	Name  cell
	Cells []cell
}

// matrixData is the JSON that the script reads.
type matrixData struct {
	Nouns   [2]string        `json:"nouns"` // of the rows and of the columns
	Targets []string         `json:"targets"`
	Rows    []rowData        `json:"rows"`
	Values  [][]cellData     `json:"values"`
	Bases   [][][]comparison `json:"bases"` // by baseline, row and column
}

type rowData struct {
	ID    string `json:"id"`
	Suite string `json:"suite"`
	Rest  bool   `json:"rest"`
}

// cellData is the class of a cell, and the text and the class of each line.
type cellData []string

// comparison has a short form, because a page has many: the size or nil, whether the difference is shown, the factor, and the difference.
type comparison []any

func (b *builder) matrix(m *document.Matrix) *matrix {
	if len(m.Columns) == 0 || len(m.Rows) == 0 || len(m.Baselines) == 0 {
		return nil
	}
	out := &matrix{Region: b.region(), Width: 1 + len(m.Columns)}
	out.Data.Nouns = [2]string{cmp.Or(m.RowNoun, "metrics"), cmp.Or(m.ColumnNoun, "targets")}
	out.Legend = wording.Capital(out.Data.Nouns[1])
	for _, name := range m.Columns {
		out.Targets = append(out.Targets, web.Clean(name))
	}
	if out.Width > mostNarrow {
		out.Heads = out.Targets
	}
	out.Data.Targets = out.Targets
	for _, baseline := range m.Baselines {
		out.Baselines = append(out.Baselines, web.Clean(baseline.Name))
		var rows [][]comparison
		for _, cells := range baseline.Cells {
			var row []comparison
			for i := range cells {
				row = append(row, b.comparison(&cells[i]))
			}
			rows = append(rows, row)
		}
		out.Data.Bases = append(out.Data.Bases, rows)
	}
	for i := range m.Rows {
		out.add(b, &m.Rows[i], i, m.Baselines[0].Cells[i])
	}
	return out
}

// add adds a row, and the heading of its group before the first one.
func (out *matrix) add(b *builder, r *document.MatrixRow, index int, cells []document.MatrixCell) {
	out.HasRest = out.HasRest || r.Rest
	if !slices.Contains(out.Suites, r.Suite) {
		out.Suites = append(out.Suites, web.Clean(r.Suite))
	}
	group := b.span(r.Group)
	if index == 0 || out.Rows[len(out.Rows)-1].Above != group.Text {
		out.Rows = append(out.Rows, matrixRow{Group: &group, Above: group.Text})
	}
	row := matrixRow{Index: index, Rest: r.Rest, Above: group.Text, Name: b.cell(r.Name)}
	var values []cellData
	for i := range cells {
		row.Cells, values = append(row.Cells, b.cell(cells[i].Factor)), append(values, b.cellData(r.Values[i]))
		out.HasValues, out.HasDifferences = out.HasValues || r.Values[i] != nil, out.HasDifferences || cells[i].Difference != nil
	}
	out.Rows = append(out.Rows, row)
	out.Data.Rows = append(out.Data.Rows, rowData{web.Clean(r.ID), web.Clean(r.Suite), r.Rest})
	out.Data.Values = append(out.Data.Values, values)
}

func (b *builder) comparison(c *document.MatrixCell) comparison {
	var size any
	if finite(c.Size) {
		size = math.Round(c.Size*1e4) / 1e4
	}
	flag := 0
	if c.Shown {
		flag = 1
	}
	return comparison{size, flag, b.cellData(c.Factor), b.cellData(c.Difference)}
}

func (b *builder) cellData(source document.Cell) cellData {
	c := b.cell(source)
	data := cellData{c.Class}
	for _, line := range c.Lines {
		data = append(data, web.Clean(line.Word+web.Tie(line.Text)), line.Class)
	}
	return data
}
