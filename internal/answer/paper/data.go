package paper

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// Row is a paper in the listing.
type Row struct {
	Name    string `json:"name"`
	Year    int    `json:"year"`
	Authors string `json:"authors"`
	Title   string `json:"title"`
	Venue   string `json:"venue"`
	Tables  int    `json:"tables"`
	Numbers int    `json:"numbers"`
}

// Data is a paper with its tables.
type Data struct {
	Name    string      `json:"name"`
	Year    int         `json:"year"`
	Authors string      `json:"authors"`
	Title   string      `json:"title"`
	Venue   string      `json:"venue"`
	Tables  []tableData `json:"tables"`
}

type tableData struct {
	Name      string    `json:"name"`
	Title     string    `json:"title"`
	Place     string    `json:"place"`
	Reference string    `json:"reference,omitempty"`
	Columns   []string  `json:"columns"`
	Rows      []rowData `json:"rows"`
	Notes     []string  `json:"notes,omitempty"`
}

type rowData struct {
	Group string     `json:"group,omitempty"`
	Label string     `json:"label"`
	Cells []cellData `json:"cells"`
}

// cellData is a printed value with the words of Touchstone for it. The value is absent for an empty cell and for a text.
type cellData struct {
	Printed    string            `json:"printed"`
	Value      *float64          `json:"value,omitempty"`
	Unit       string            `json:"unit,omitempty"`
	Flag       string            `json:"flag,omitempty"`
	Compared   string            `json:"compared,omitempty"`
	Arch       string            `json:"arch,omitempty"`
	Target     string            `json:"target,omitempty"`
	Benchmark  string            `json:"benchmark,omitempty"`
	Metric     string            `json:"metric,omitempty"`
	Item       string            `json:"item,omitempty"`
	Params     map[string]string `json:"parameters,omitempty"`
	Unmeasured string            `json:"unmeasured,omitempty"`
}

// Rows are the papers of the listing.
func Rows(papers []paper.Paper) []Row {
	var rows []Row
	for _, p := range papers {
		rows = append(rows, Row{p.Name, p.Year, p.Authors, p.Title, p.Venue, len(p.Tables), numbers(p)})
	}
	return rows
}

// newData is a paper with its tables for JSON.
func newData(p paper.Paper) Data {
	d := Data{p.Name, p.Year, p.Authors, p.Title, p.Venue, nil}
	for _, t := range p.Tables {
		table := tableData{Name: t.Name, Title: t.Title, Place: t.Place, Reference: t.Reference, Notes: t.Notes}
		for _, c := range t.Columns {
			table.Columns = append(table.Columns, c.Heading)
		}
		for r, row := range t.Rows {
			data := rowData{Group: row.Group, Label: row.Label}
			for c, cell := range row.Cells {
				if cell.Printed == "" {
					data.Cells = append(data.Cells, cellData{})
					continue
				}
				words := t.OfCell(r, c)
				item := cellData{
					Printed: cell.Printed, Unit: words.Unit, Flag: cell.Flag, Compared: string(words.Compared), Arch: words.Arch, Target: words.Target,
					Benchmark: words.Benchmark, Metric: words.Metric, Item: words.Item, Params: words.Params, Unmeasured: words.Unmeasured,
				}
				if v, ok := cell.Number(); ok {
					item.Value = &v
				}
				data.Cells = append(data.Cells, item)
			}
			table.Rows = append(table.Rows, data)
		}
		d.Tables = append(d.Tables, table)
	}
	return d
}

// numbers is the number of printed values, ranges and bounds included.
func numbers(p paper.Paper) int {
	n := 0
	for _, t := range p.Tables {
		for _, row := range t.Rows {
			for _, c := range row.Cells {
				if hasNumber(c) {
					n++
				}
			}
		}
	}
	return n
}

// hasNumber reports whether a cell is a number, a bound or a range.
func hasNumber(c paper.Cell) bool {
	return strings.IndexAny(strings.TrimLeft(c.Printed, "<>≤≥≈ (-"), "0123456789") == 0
}

// records has a row for each printed value of a paper.
func records(d *Data) document.Records {
	out := document.Records{Columns: []string{
		"paper", "table", "group", "row", "column", "printed", "value", "unit", "flag", "target", "benchmark", "metric", "item", "unmeasured",
	}}
	for _, t := range d.Tables {
		for _, row := range t.Rows {
			for c, cell := range row.Cells {
				if cell.Printed != "" {
					out.Rows = append(out.Rows, []any{
						d.Name, t.Name, row.Group, row.Label, t.Columns[c], cell.Printed, document.NumberOf(cell.Value), cell.Unit, cell.Flag, cell.Target, cell.Benchmark,
						cell.Metric, cell.Item, cell.Unmeasured,
					})
				}
			}
		}
	}
	return out
}

// listed has a row for each paper.
func listed(papers []Row) document.Records {
	out := document.Records{Columns: []string{"paper", "year", "authors", "title", "venue", "tables", "numbers"}}
	for _, p := range papers {
		out.Rows = append(out.Rows, []any{p.Name, p.Year, p.Authors, p.Title, p.Venue, p.Tables, p.Numbers})
	}
	return out
}
