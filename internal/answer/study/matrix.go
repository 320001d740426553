package study

import (
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
)

const matrixNote = "The values of all tables that have a ratio to the reference. A cell has our ratio with its 95 % interval, and the ratio of the study. They differ if the interval excludes the ratio of the " +
	"study. The size of a difference is the factor between the two."

// matrix is the section with the ratios of all tables by value and target, for pages. It is nil without a ratio of the study beside ours.
func matrix(r *reproduce.Reproduction) []document.Block {
	var entries []document.MatrixEntry
	hasPair := false
	for i := range r.Tables {
		t := &r.Tables[i]
		for row := range t.Cells {
			for column := range t.Cells[row] {
				c := &t.Cells[row][column]
				if c.Ours == nil || !c.Reference && c.Ratio == nil {
					continue
				}
				title := reproduce.Title(c.Of)
				suite, _, _ := strings.Cut(title, ".")
				e := document.MatrixEntry{
					Row: document.MatrixRow{
						ID: t.Name + "/" + title, Suite: suite, Group: document.Span{Text: t.Name, Link: "#" + sectionID(t)}, Name: document.Cell{{Text: laneName(t, row, column)}, {Text: title, Tone: document.Faint}},
					},
					Column: c.Of.Target, Value: values(c), MatrixCell: besideStudy(c),
				}
				hasPair = hasPair || !math.IsNaN(e.Size)
				entries = append(entries, e)
			}
		}
	}
	if !hasPair {
		return nil
	}
	m := document.NewMatrix(entries, document.Cell{{Text: quantity.None}, {Text: "no ratio", Tone: document.Faint}})
	m.RowNoun = "values"
	return []document.Block{document.Section{ID: "ratios", Title: "Ratios " + r.Where() + " and in the study", Short: "Ratios", Detail: true, Blocks: []document.Block{document.Text{Text: matrixNote}, m}}}
}

// values are our value and the printed one.
func values(c *reproduce.Cell) document.Cell {
	out := document.Cell{{Text: c.Value()}}
	if c.Printed != "" {
		out = append(out, document.Span{Text: "study " + c.Printed, Tone: document.Faint})
	}
	return out
}

// besideStudy is our ratio to the reference beside the study's.
func besideStudy(c *reproduce.Cell) document.MatrixCell {
	cell := document.MatrixCell{Size: math.NaN()}
	if c.Reference {
		cell.Factor = document.Cell{{Text: c.Value()}, {Text: "reference", Tone: document.Faint}}
		return cell
	}
	cell.Factor = document.Cell{{Text: quantity.Number(c.Ratio.Ratio)}}
	ci := c.Ratio.CI
	if ci != nil {
		cell.Factor = append(cell.Factor, document.Span{Text: quantity.Number(ci.Lo) + " to " + quantity.Number(ci.Hi)})
	}
	published := c.PublishedRatio()
	if published == "" || !(c.Ratio.Ratio > 0) || !(c.Published > 0) {
		return cell
	}
	cell.Size = math.Log(c.Ratio.Ratio / c.Published)
	cell.Shown = !c.Emulated && ci != nil && (c.Published < ci.Lo || c.Published > ci.Hi)
	if published = "study " + published; cell.Shown {
		published += ", differs"
	}
	cell.Factor = append(cell.Factor, document.Span{Text: published, Tone: document.Faint})
	return cell
}
