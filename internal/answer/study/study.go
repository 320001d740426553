// Package study makes the document of a reproduction: the claims of a paper with their verdicts first, then its tables with our values.
package study

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
)

// mostComparisons is the largest number of comparisons of a claim.
const mostComparisons = 2

// Document is the document of a reproduction.
func Document(r *reproduce.Reproduction) *document.Document {
	d := &document.Document{Kind: "reproduction", Title: "Touchstone, " + r.Heading(), Records: func() document.Records { return records(r) }, Whole: "touchstone reproduce " + r.Paper.Name}
	for _, note := range []string{r.Emulation(), r.Origin()} {
		if note != "" {
			d.Notes = append(d.Notes, document.Text{Text: note, Tone: document.Alarm})
		}
	}
	facts := document.Facts{Items: []document.Fact{{Name: "Paper", Text: r.Paper.Citation()}}}
	for i := range r.Runs {
		first := &r.Runs[i].Runs[0]
		facts.Items = append(facts.Items, document.Fact{Name: "Run", Text: fmt.Sprintf("%s, %s, %s, %s", first.Name, first.ID, runs.Started(first), finding.State(first))})
		if i == 0 {
			facts.Items = append(facts.Items, document.Fact{Name: "Host", Text: runs.Host(first)})
		}
		facts.Items = append(facts.Items, document.Fact{Name: "Targets", Text: runs.Targets(first)})
	}
	d.Blocks = append(d.Blocks, facts, claims(r))
	for i := range r.Tables {
		d.Blocks = append(d.Blocks, table(&r.Tables[i]))
	}
	method := document.Section{ID: "method", Title: "Method"}
	for _, note := range r.Method() {
		method.Blocks = append(method.Blocks, document.Text{Text: note})
	}
	d.Blocks = append(d.Blocks, method)
	return d
}

// tones are the tones of the verdicts.
var tones = map[reproduce.Verdict]document.Tone{reproduce.Agrees: document.Good, reproduce.Disagrees: document.Bad, reproduce.CannotTell: document.Strong}

// claims lists the claims with their verdicts, and the comparisons of those that do not agree. Claims that were not measured follow, by
// their reasons.
func claims(r *reproduce.Reproduction) document.Block {
	s := document.Section{ID: "claims", Title: "Claims: " + r.Summary()}
	var verdicts document.Facts
	for i := range r.Claims {
		c := &r.Claims[i]
		if c.Verdict == reproduce.NotMeasured {
			continue
		}
		fact := document.Fact{Name: string(c.Verdict), Tone: tones[c.Verdict], Text: c.Text + " (" + c.Place + ")"}
		if c.Reason != "" {
			fact.Notes = append(fact.Notes, document.Span{Text: c.Reason, Tone: document.Faint})
		}
		if c.Verdict != reproduce.Agrees {
			fact.Notes = append(fact.Notes, contrary(c)...)
		}
		verdicts.Items = append(verdicts.Items, fact)
	}
	if verdicts.Items != nil {
		s.Blocks = append(s.Blocks, verdicts)
	}
	for _, reason := range r.Reasons() {
		l := document.List{Title: "Not measured: " + reason}
		for i := range r.Claims {
			if c := &r.Claims[i]; c.Verdict == reproduce.NotMeasured && c.Reason == reason {
				l.Items = append(l.Items, document.Item{Span: document.Span{Text: c.Text + " (" + c.Place + ")"}})
			}
		}
		s.Blocks = append(s.Blocks, l)
	}
	return s
}

// contrary is the first comparisons with the verdict of their claim.
func contrary(c *reproduce.Claim) []document.Span {
	var contraries []*reproduce.Comparison
	for i := range c.Comparisons {
		if k := &c.Comparisons[i]; k.Compared != nil && k.Verdict == c.Verdict {
			contraries = append(contraries, k)
		}
	}
	var notes []document.Span
	for _, k := range contraries[:min(len(contraries), mostComparisons)] {
		notes = append(notes, document.Span{Text: fmt.Sprintf("%s: %s is %s against %s; claimed: %s", reproduce.Title(k.Of), k.Target, k.Ratio(), k.Other, c.Stated())})
	}
	if rest := len(contraries) - mostComparisons; rest > 0 {
		notes = append(notes, document.Span{Text: fmt.Sprintf("and %d more", rest)})
	}
	return notes
}

// table is a table of the paper: the printed value, our value, and the two ratios to the reference.
func table(t *reproduce.Table) document.Block {
	s := document.Section{ID: "table/" + t.Name, Title: t.Name + "  " + t.Title}
	caption := t.Place
	if t.Reason == "" {
		caption += "; each cell: the printed value, the median " + t.Where
		if t.Reference != "" {
			caption += ", the ratios to " + t.Reference + ": in the study, " + t.Where
		}
	}
	s.Blocks = append(s.Blocks, document.Text{Text: caption})
	if t.Reason != "" {
		s.Blocks = append(s.Blocks, document.Text{Text: "Not measured: " + t.Reason})
		return s
	}
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
	s.Blocks = append(s.Blocks, out)
	var l document.List
	for _, reason := range t.Lacks() {
		l.Items = append(l.Items, document.Item{Span: document.Span{Text: reason}})
	}
	for _, flag := range t.Flags() {
		l.Items = append(l.Items, document.Item{Span: document.Span{Text: flag, Tone: document.Alarm}})
	}
	if l.Items != nil {
		s.Blocks = append(s.Blocks, l)
	}
	return s
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
