// Package counts makes the tables of a comparison of counts, which the answers of several verbs contain: the counts that differ, the counts
// that vary and decide nothing, and the gates. It also makes the document of a comparison with a file of expected counts.
package counts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Section is the counts that differ, and those that decide no gate. It has no block for a nil comparison.
func Section(c *counts.Comparison) []document.Block {
	if c == nil {
		return nil
	}
	s := document.Section{ID: "counts", Title: "Counts", Blocks: []document.Block{document.Text{Text: c.Summary()}}}
	for i := range c.Cells {
		cell := &c.Cells[i]
		t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Step", "Component", "Call", "A", "B", "Remark")}}
		for n := range cell.Changes {
			count := &cell.Changes[n]
			row := document.Cells(count.StepText(), count.Component, count.Name, count.A.String(), count.B.String(), remark(cell, count))
			row[len(row)-1][0].Tone = document.Faint
			t.Rows = append(t.Rows, row)
		}
		if len(cell.Changes) > 0 {
			s.Blocks = append(s.Blocks, document.Section{Title: cell.Title() + " on " + targets(cell), Blocks: []document.Block{t}})
		}
	}
	if list := exclusions(c.Cells); list.Items != nil {
		s.Blocks = append(s.Blocks, list)
	}
	return []document.Block{s}
}

// targets names the target of both sides, or both targets.
func targets(cell *counts.Cell) string {
	if cell.TargetA == cell.TargetB {
		return cell.TargetB
	}
	return cell.TargetA + ", " + cell.TargetB
}

// exclusions lists the calls that decide nothing.
func exclusions(cells []counts.Cell) document.List {
	list := document.List{Title: "Not compared, because these counts vary from trace to trace"}
	for i := range cells {
		if names := excluded(&cells[i]); names != "" {
			list.Items = append(list.Items, document.Item{Span: document.Span{Text: fmt.Sprintf("%s on %s: %s", cells[i].Title(), targets(&cells[i]), names), Tone: document.Faint}})
		}
	}
	return list
}

// remark is the reason why a change decides no gate.
func remark(cell *counts.Cell, count *counts.Count) string {
	switch {
	case count.Varies:
		return "varies"
	case count.Moved:
		return "moved to another step"
	case !cell.Shown:
		return "not shown by " + wording.Counted(min(cell.TracesA, cell.TracesB), "trace")
	}
	return ""
}

// excluded lists the calls that vary, by component.
func excluded(cell *counts.Cell) string {
	var components []string
	names := map[string][]string{}
	for _, count := range cell.Excluded {
		if names[count.Component] == nil {
			components = append(components, count.Component)
		}
		if !slices.Contains(names[count.Component], count.Name) {
			names[count.Component] = append(names[count.Component], count.Name)
		}
	}
	var texts []string
	for _, component := range components {
		slices.Sort(names[component])
		texts = append(texts, component+" "+strings.Join(names[component], ", "))
	}
	return strings.Join(texts, "; ")
}

// Subject names the counts of a gate.
func Subject(k *counts.Check) string { return fmt.Sprintf("%s %s on %s", k.Title, k.Name, k.Target) }

// Checks are the gates as test cases, with a suite for each benchmark.
func Checks(c *counts.Comparison) []document.Check {
	if c == nil {
		return nil
	}
	var list []document.Check
	for i := range c.Checks {
		k := &c.Checks[i]
		list = append(list, document.Check{
			Suite: k.Title, Name: "counts of " + k.Name + " on " + k.Target, Status: document.AnswerStatus(k.Answer), Answer: string(k.Answer), Message: k.Gate + ": " + k.Reason,
		})
	}
	return list
}
