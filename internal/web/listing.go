package web

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// listing is a document with one table, whose rows are also its records.
type listing struct {
	kind, title string
	columns     []string
	rows        [][]document.Cell
	blocks      []document.Block // before the table
}

func newListing(kind, title string, columns ...string) *listing {
	return &listing{kind: kind, title: title, columns: columns}
}

func plain(text string) document.Cell { return document.Cell{{Text: text}} }

func link(text, address string) document.Cell { return document.Cell{{Text: text, Link: address}} }

func (l *listing) add(cells ...document.Cell) { l.rows = append(l.rows, cells) }

// document returns the listing with its data for JSON.
func (l *listing) document(data any) *document.Document {
	var heads []document.Cell
	for _, name := range l.columns {
		heads = append(heads, plain(strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "_", " ")))
	}
	table := document.Table{Listing: true, Rows: append([][]document.Cell{heads}, l.rows...)}
	d := &document.Document{Kind: l.kind, Title: l.title, Blocks: append(l.blocks, table), Data: func() any { return data }}
	if l.rows == nil {
		d.Blocks = append(l.blocks, document.Text{Text: "The folder has none."})
	}
	d.Records = func() document.Records {
		records := document.Records{Columns: l.columns}
		for _, row := range l.rows {
			var values []any
			for _, cell := range row {
				var lines []string
				for _, span := range cell {
					lines = append(lines, span.Text)
				}
				values = append(values, strings.Join(lines, " "))
			}
			records.Rows = append(records.Rows, values)
		}
		return records
	}
	return d
}
