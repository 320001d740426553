package paper

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// Row is a paper in the listing.
type Row struct {
	Name    string `json:"name" doc:"Word for the study on the command line: the first author."`
	Year    int    `json:"year" doc:"Year of the publication."`
	Authors string `json:"authors" doc:"The authors."`
	Title   string `json:"title" doc:"The title."`
	Venue   string `json:"venue" doc:"The journal or conference."`
	Tables  int    `json:"tables" doc:"Number of tables."`
	Numbers int    `json:"numbers" doc:"Number of printed values, ranges and bounds included."`
}

// Data is a paper with its tables.
type Data struct {
	Name    string      `json:"name" doc:"Word for the study on the command line: the first author."`
	Year    int         `json:"year" doc:"Year of the publication."`
	Authors string      `json:"authors" doc:"The authors."`
	Title   string      `json:"title" doc:"The title."`
	Venue   string      `json:"venue" doc:"The journal or conference."`
	Tables  []tableData `json:"tables" doc:"The tables as they are printed."`
}

type tableData struct {
	Name      string         `json:"name" doc:"Name of the table, unique in its study."`
	Title     string         `json:"title" doc:"The printed caption, or the subject of numbers of the text."`
	Place     string         `json:"place" doc:"Its section, and the figure whose values the text prints."`
	Reference string         `json:"reference,omitempty" doc:"Target that the study compares the others with; absent if the table compares nothing."`
	Columns   []string       `json:"columns" doc:"The headings of the columns."`
	Rows      []tableRowData `json:"rows" doc:"The rows."`
	Notes     []string       `json:"notes,omitempty" doc:"Remarks on more than one cell."`
}

type tableRowData struct {
	Group string     `json:"group,omitempty" doc:"Heading of several rows."`
	Label string     `json:"label" doc:"Heading of the row."`
	Cells []cellData `json:"cells" doc:"The cells, in the order of the columns."`
}

// cellData is a printed value with the words of Touchstone for it. The value is absent for an empty cell and for a text.
type cellData struct {
	Printed    string            `json:"printed" doc:"The printed text without its unit; empty for an empty cell."`
	Value      *float64          `json:"value,omitempty" doc:"The printed number, in the printed unit; absent for an empty cell and for a text."`
	Unit       string            `json:"unit,omitempty" doc:"The printed unit."`
	Flag       string            `json:"flag,omitempty" doc:"The reason why the printed value is wrong or doubtful."`
	Compared   string            `json:"compared,omitempty" doc:"The relation of the value to the table's reference; absent for an absolute value."`
	Arch       string            `json:"arch,omitempty" doc:"Architecture of the study's machine, in Go's words; absent for a study with one machine."`
	Target     string            `json:"target,omitempty" doc:"Name of the target."`
	Benchmark  string            `json:"benchmark,omitempty" doc:"Name of the benchmark."`
	Metric     string            `json:"metric,omitempty" doc:"Name of the metric."`
	Item       string            `json:"item,omitempty" doc:"The test of a row whose columns are metrics, or the element of a series."`
	Params     map[string]string `json:"parameters,omitempty" doc:"Parameters with other values than in the study's plan."`
	Unmeasured string            `json:"unmeasured,omitempty" doc:"The reason why Touchstone does not measure the value."`
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
			data := tableRowData{Group: row.Group, Label: row.Label}
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
