package study

import (
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// table is a table of the paper: the printed value, our value, and the two ratios to the reference.
func table(t *reproduce.Table) document.Block {
	s := document.Section{ID: sectionID(t), Title: t.Name + "  " + t.Title, Short: t.Name}
	caption := t.Place
	if t.Reason == "" {
		caption += "; each cell: the printed value, the median " + t.Where
		if t.Reference != "" {
			caption += ", the ratios to " + t.Reference + ": in the study, " + t.Where
		}
	}
	s.Blocks = append(s.Blocks, document.Text{Text: caption})
	var remarks document.List
	if t.Reason == "" {
		for _, reason := range t.Lacks() {
			remarks.Items = append(remarks.Items, document.Item{Span: document.Span{Text: reason}})
		}
	}
	for _, flag := range t.Flags() {
		remarks.Items = append(remarks.Items, document.Item{Span: document.Span{Text: flag, Tone: document.Alarm}})
	}
	content := []document.Block{cells(t)}
	if remarks.Items != nil {
		content = append(content, remarks)
	}
	if t.Reason != "" {
		s.Short += ", not measured"
		s.Blocks = append(s.Blocks, document.Text{Text: "Not measured: " + t.Reason}, document.Section{Title: "The printed values", Folded: true, Detail: true, Blocks: content})
		return s
	}
	s.Blocks = append(append(append(s.Blocks, ratios(t)...), content...), origins(t))
	return s
}

func sectionID(t *reproduce.Table) string { return "table/" + t.Name }

func cells(t *reproduce.Table) document.Table {
	head := []document.Cell{nil}
	for _, c := range t.Columns {
		head = append(head, document.Cell{{Text: c.Heading}})
	}
	out := document.Table{Rows: [][]document.Cell{head}}
	for i, row := range t.Rows {
		cells := []document.Cell{{{Text: row.Label}, {Text: row.Group}}}
		for n := range t.Columns {
			if n < len(t.Cells[i]) {
				cells = append(cells, cell(&t.Cells[i][n]))
			} else {
				cells = append(cells, nil)
			}
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

func cell(c *reproduce.Cell) document.Cell {
	number := c.Printed
	if number == "" {
		number = quantity.None
	}
	if c.Flag != "" {
		number += " !"
	}
	tone := document.Strong
	if c.Ours == nil {
		tone = document.Faint
	}
	out := document.Cell{{Text: number}, {Text: c.Value(), Tone: tone}}
	ratio := ""
	ours, published := c.OurRatio(), c.PublishedRatio()
	switch {
	case c.Reference && c.Ours != nil:
		ratio = "reference"
	case ours != "" && published != "":
		ratio = published + ", " + ours
	case ours != "":
		ratio = quantity.None + ", " + ours
	case published != "":
		ratio = published + ", " + quantity.None
	}
	if ratio != "" {
		out = append(out, document.Span{Text: ratio, Tone: document.Faint})
	}
	return out
}

// The groups of the marks.
const (
	ofStudy = iota
	ofOurs
)

// ratios draw the ratios of each target, with a lane for each of its values. They leave out values without a ratio that an axis can show.
func ratios(t *reproduce.Table) []document.Block {
	var figures []document.Lanes
	for i, row := range t.Cells {
		for n := range row {
			c := &row[n]
			if c.Ratio == nil || !(c.Ratio.Ratio > 0) || math.IsInf(c.Ratio.Ratio, 0) {
				continue
			}
			index := slices.IndexFunc(figures, func(l document.Lanes) bool { return l.Name == c.Of.Target })
			if index < 0 {
				index = len(figures)
				figures = append(figures, document.Lanes{
					Name: c.Of.Target, Caption: "ratio to the reference", Unit: result.Score, Groups: []string{"the study", t.Where}, Lines: []document.Line{{Name: "equal", Value: 1}},
				})
			}
			lane := document.Lane{Name: laneName(t, i, n)}
			if c.Published > 0 {
				lane.Marks = append(lane.Marks, document.Mark{Group: ofStudy, Value: c.Published, Text: "in the study " + c.PublishedRatio()})
			}
			ours := document.Mark{Group: ofOurs, Value: c.Ratio.Ratio, Text: t.Where + " " + c.OurRatio()}
			if ci := c.Ratio.CI; ci != nil {
				ours.Low, ours.High = &ci.Lo, &ci.Hi
			}
			lane.Marks = append(lane.Marks, ours)
			figures[index].Lanes = append(figures[index].Lanes, lane)
		}
	}
	var blocks []document.Block
	for _, figure := range figures {
		blocks = append(blocks, figure)
	}
	return blocks
}

// laneName is the name of a value of a target: its row, or its column if the rows are targets.
func laneName(t *reproduce.Table, row, column int) string {
	if t.Columns[column].Of.Target != "" {
		return t.Rows[row].Label
	}
	return strings.TrimSpace(t.Rows[row].Of.Item + " " + t.Columns[column].Heading)
}

// origins list the metrics and the targets of our values.
func origins(t *reproduce.Table) document.Block {
	s := document.Section{Title: "The metrics and targets of the table", Folded: true, Detail: true}
	for _, property := range []func(paper.Of) string{reproduce.Title, func(origin paper.Of) string { return origin.Target }} {
		s.Blocks = append(s.Blocks, byHeading(t, property))
	}
	return s
}

// byHeading lists a property of our values: by row if the values of each row share it, else by column, else by cell.
func byHeading(t *reproduce.Table, property func(paper.Of) string) document.List {
	var l document.List
	for _, heading := range []func(row, column int) string{
		func(row, _ int) string { return t.Rows[row].Label },
		func(_, column int) string { return t.Columns[column].Heading },
		func(row, column int) string { return t.Rows[row].Label + ", " + t.Columns[column].Heading },
	} {
		l.Items = nil
		headings, lines := map[string]bool{}, map[string]bool{}
		for i, row := range t.Cells {
			for n := range row {
				if row[n].Ours == nil {
					continue
				}
				line := heading(i, n) + ": " + property(row[n].Of)
				if !lines[line] {
					l.Items = append(l.Items, document.Item{Span: document.Span{Text: line}})
				}
				headings[heading(i, n)], lines[line] = true, true
			}
		}
		if len(headings) == len(lines) {
			break
		}
	}
	return l
}
