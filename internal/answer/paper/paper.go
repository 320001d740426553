// Package paper makes the documents of the published results: the list of the studies, and the tables of one.
package paper

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// kind is the kind of both documents.
const kind = "paper"

// Listing is the document of the list of papers.
func Listing(papers []Row) *document.Document {
	t := document.Table{Prose: true, Rows: [][]document.Cell{document.Cells("paper", "year", "tables", "numbers", "title")}}
	for _, r := range papers {
		t.Rows = append(t.Rows, document.Cells(r.Name, fmt.Sprint(r.Year), fmt.Sprint(r.Tables), fmt.Sprint(r.Numbers), r.Title))
	}
	return &document.Document{
		Kind: kind, Title: "Published results of the studies", Blocks: []document.Block{t}, Records: func() document.Records { return listed(papers) }, Data: func() any { return papers }, Whole: "touchstone paper -o json",
	}
}

// Document is the document of a paper: its tables as they are printed, with notes on their errors.
func Document(p paper.Paper) *document.Document {
	data := newData(p)
	d := &document.Document{
		Kind: kind, Title: p.Name + ": " + p.Title, Records: func() document.Records { return records(&data) }, Data: func() any { return data }, Whole: "touchstone paper " + p.Name + " -o json",
		Blocks: []document.Block{document.Text{Text: p.Citation() + "."}},
	}
	for _, t := range p.Tables {
		d.Blocks = append(d.Blocks, table(t))
	}
	return d
}

func table(t paper.Table) document.Section {
	g := newGrid(t)
	out := document.Table{Rows: [][]document.Cell{document.Cells(append([]string{""}, g.Headings...)...)}, Prose: true}
	group := ""
	for r, label := range g.Labels {
		if g.Groups[r] != group {
			group = g.Groups[r]
			out.Rows = append(out.Rows, document.Cells(group))
		}
		row := document.Cells(label)
		for _, c := range g.Cells[r] {
			row = append(row, document.Cells(c.Text+c.Mark)...)
		}
		out.Rows = append(out.Rows, row)
	}
	s := document.Section{ID: "table/" + t.Name, Title: t.Name + ": " + t.Title, Blocks: []document.Block{document.Text{Text: g.Caption}, out}}
	var marks document.Facts
	for i, flag := range g.Flags {
		marks.Items = append(marks.Items, document.Fact{Name: noteMark(i), Text: flag})
	}
	if marks.Items != nil {
		s.Blocks = append(s.Blocks, marks)
	}
	var notes document.List
	for _, note := range g.Notes {
		notes.Items = append(notes.Items, document.Item{Span: document.Span{Text: note}})
	}
	if notes.Items != nil {
		s.Blocks = append(s.Blocks, notes)
	}
	return s
}
