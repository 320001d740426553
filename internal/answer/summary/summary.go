// Package summary makes the document of a run on one screen: warnings, answers, one table, and the way to the rest. A
// report has everything else.
package summary

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Options describe the place of the summary.
type Options struct {
	// Width is the number of columns of the terminal. The table has no more columns than fit.
	Width int
	// Command shows the whole report. Page is the file of the page, or empty.
	Command, Page string
}

// mostWarnings is the largest number of warnings in front of the answers.
const mostWarnings = 3

// Document is the summary of a report of one run.
func Document(r *report.Report, o Options) *document.Document {
	run := &r.Runs[0]
	d := &document.Document{Kind: "summary", Title: title(r)}
	notes, rest := finding.Cautions(r.Analysis, 0), 0
	if len(notes) > mostWarnings {
		notes, rest = notes[:mostWarnings], len(notes)-mostWarnings
	}
	if e := finding.EmulationOf(r.Analysis); e != nil {
		d.Notes = append(d.Notes, document.Text{Text: e.Note, Tone: document.Alarm})
	}
	for _, note := range notes {
		d.Notes = append(d.Notes, document.Text{Text: note, Tone: document.Alarm})
	}
	var facts document.Facts
	for _, answer := range r.Findings.Answers {
		if answer.Brief != "" {
			facts.Items = append(facts.Items, document.Fact{Name: answer.Name, Tone: document.Strong, Text: answer.Brief})
		}
	}
	if facts.Items != nil {
		d.Blocks = append(d.Blocks, facts)
	}
	g := newGrid(r.Standings(0), o.Width)
	if g.columns != nil {
		d.Blocks = append(d.Blocks, g.table())
	}
	if g.targets != nil {
		d.Blocks = append(d.Blocks, document.Text{Text: g.legend(), Tone: document.Faint})
	}
	if text := lacking(run, g); text != "" {
		d.Blocks = append(d.Blocks, document.Text{Text: text})
	}
	pointer := "All the rest: " + o.Command
	if rest > 0 {
		pointer = fmt.Sprintf("%s and all the rest: %s", wording.Counted(rest, "warning"), o.Command)
	}
	if o.Page != "" {
		pointer += ", page " + o.Page
	}
	d.Blocks = append(d.Blocks, document.Text{Text: pointer})
	return d
}

// title names the run, its extent and its machine.
func title(r *report.Report) string {
	run := &r.Runs[0]
	var blocks []int
	for _, b := range r.Benchmarks() {
		if s := b.Sections[0]; s != nil {
			blocks = append(blocks, s.Blocks)
		}
	}
	parts := []string{strings.TrimSpace(run.Name + " " + run.ID), finding.State(run)}
	if took := run.Ended.Sub(run.Started); run.State == result.Complete && took > 0 {
		parts[1] = quantity.RoundedTime(took).String()
	}
	if blocks != nil {
		parts = append(parts, finding.Span(slices.Min(blocks), slices.Max(blocks), "block"))
	}
	if run.Host.IsKnown() {
		h := &run.Host
		if h.Nature() == result.Guest {
			parts = append(parts, "VM")
		}
		system, _, _ := strings.Cut(strings.Replace(h.OS, " GNU/Linux", "", 1), " (")
		parts = append(parts, wording.Counted(h.CPUs, "CPU"), system)
	}
	return strings.Join(parts, ", ")
}

// lacking names what the run did not measure, and the metrics that the table has no place for.
func lacking(run *analysis.Run, g grid) string {
	var parts []string
	var dimensions []string
	for _, row := range run.Scorecard.Rows {
		if row.Unmeasured() {
			dimensions = append(dimensions, string(row.Dimension))
		}
	}
	if dimensions != nil {
		parts = append(parts, "Not measured: "+strings.TrimSpace(wording.Shortlist(dimensions, "")))
	}
	var missing []string
	for _, t := range run.Targets {
		if t.Unavailable != "" && t.OK == 0 {
			missing = append(missing, t.Name)
		}
	}
	if missing != nil {
		parts = append(parts, "Not available: "+wording.Shortlist(missing, "targets"))
	}
	if g.rest != nil {
		parts = append(parts, "Also: "+strings.TrimSpace(wording.Shortlist(g.rest, "")))
	}
	return strings.Join(parts, ". ")
}

// grid is the table of targets and columns.
type grid struct {
	reference string
	columns   []analysis.Standing
	targets   []string
	// rest are the headings of the standings without a column.
	rest  []string
	marks map[string]bool
	// needed is the number of blocks that the cells without a verdict need at least.
	needed int
}

// The marks in the place of a cost.
const (
	equal   = "~"
	trivial = "="
	mixed   = "±"
	few     = "?"
	ratio   = "÷" // none
	lost    = "lost"
	none    = "–"
	part    = "*" // behind a cost
)

// newGrid takes the standings with the same reference as the first one, as long as they fit the width.
func newGrid(standings []analysis.Standing, width int) grid {
	g := grid{marks: map[string]bool{}}
	if len(standings) == 0 {
		return g
	}
	g.reference = standings[0].Reference
	for _, s := range standings {
		if s.Reference != g.reference {
			g.rest = append(g.rest, s.Heading)
			continue
		}
		g.columns = append(g.columns, s)
		for _, e := range s.Entries {
			if !slices.Contains(g.targets, e.Target.Name) {
				g.targets = append(g.targets, e.Target.Name)
			}
		}
	}
	for len(g.columns) > 1 && g.width() > width {
		last := len(g.columns) - 1
		g.rest = append([]string{g.columns[last].Heading}, g.rest...)
		g.columns = g.columns[:last]
	}
	return g
}

// gap is the number of blanks between columns.
const gap = 3

// width is the width of the table in a terminal.
func (g *grid) width() int {
	widths := make([]int, 1+len(g.columns))
	for _, row := range g.table().Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell[0].Text))
		}
	}
	total := -gap
	for _, w := range widths {
		total += w + gap
	}
	return total
}

func (g *grid) table() document.Table {
	head := document.Cells("")
	base := document.Cells(g.reference)
	for i := range g.columns {
		s := &g.columns[i]
		head = append(head, document.Cell{{Text: s.Heading, Link: "#benchmark/" + s.Benchmark.Title()}})
		if s.Value == nil {
			base = append(base, document.Cell{g.mark(none)})
			continue
		}
		base = append(base, document.Cells(quantity.Text(s.Value.Median, s.Metric.Unit))...)
	}
	t := document.Table{Rows: [][]document.Cell{head, base}}
	for _, target := range g.targets {
		row := document.Cells(target)
		for i := range g.columns {
			row = append(row, document.Cell{g.cell(&g.columns[i], target)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// cell is the cost of a target if it is shown, else the mark of the verdict.
func (g *grid) cell(s *analysis.Standing, target string) document.Span {
	index := slices.IndexFunc(s.Entries, func(e analysis.Entry) bool { return e.Target.Name == target })
	if index < 0 {
		return g.mark(none)
	}
	e := s.Entries[index]
	if e.Comparison == nil {
		return document.Span{Text: quantity.Text(e.Value.Median, s.Metric.Unit), Tone: document.Faint}
	}
	cost := quantity.Cost(e.Comparison.DecidingRatio(), s.Metric.Metric)
	switch e.Comparison.Verdict {
	case stats.Slower, stats.Faster:
		span := document.Span{Text: cost, Tone: document.Bad}
		if e.Comparison.Verdict == stats.Faster {
			span.Tone = document.Good
		}
		if analysis.OfPart(e.Comparison) {
			g.marks[part] = true
			span.Text += part
		}
		return span
	case stats.NoDifference, stats.TooNoisy:
		return g.mark(equal)
	case stats.Negligible:
		return g.mark(trivial)
	case stats.Mixed:
		return g.mark(mixed)
	case stats.TrialsLost:
		return g.mark(lost)
	case stats.TooFew:
		g.needed = max(g.needed, e.BlocksNeeded)
		return g.mark(few)
	case stats.NotComparable:
		return g.mark(ratio)
	case stats.Withheld:
	}
	return document.Span{Text: strings.TrimSuffix(cost, " ×"), Tone: document.Faint}
}

func (g *grid) mark(mark string) document.Span {
	g.marks[mark] = true
	return document.Span{Text: mark, Tone: document.Faint}
}

// legend explains the marks that the table has.
func (g *grid) legend() string {
	parts := []string{"× cost against " + g.reference + ", shown at " + quantity.Percent(stats.Alpha)}
	if slices.ContainsFunc(g.columns, func(s analysis.Standing) bool {
		return slices.ContainsFunc(s.Entries, func(e analysis.Entry) bool { return e.Comparison != nil && e.Comparison.Verdict == stats.Withheld })
	}) {
		parts = append(parts, "without ×: the CPU is emulated, no verdict")
	}
	for _, m := range []struct{ mark, text string }{
		{equal, "no difference shown"},
		{trivial, "too small to matter"},
		{mixed, "some values better, some worse"},
		{lost, "trials lost, no verdict"},
		{few, fmt.Sprintf("too few blocks, needs %d", g.needed)},
		{ratio, "no ratio, a value is not positive"},
		{none, "not measured"},
		{part, "of a part of the values"},
	} {
		if g.marks[m.mark] {
			parts = append(parts, m.mark+" "+m.text)
		}
	}
	return strings.Join(parts, "   ")
}
