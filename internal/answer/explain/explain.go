// Package explain makes the document of an explanation: each call that takes longer on one target, with the causes in its time and the counts that differ.
package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// rows are the largest numbers of rows in the tables of a call. Another row has the sum of the other causes. words is the largest number of other counts in a
// text, and the text has the command for the rest.
type rows struct{ causes, counts, words int }

var (
	// terminalRows are the rows in a terminal. A call has less than a hundred causes, each with 2 % of the difference. JSON and CSV have all counts.
	terminalRows = rows{causes: math.MaxInt, counts: 12}
	// pageRows are the rows in the page of a report, which has many pairs of targets.
	pageRows = rows{causes: 12, counts: 10, words: 60}
)

// Document is the document of an explanation.
func Document(e *explain.Explanation) *document.Document {
	d := &document.Document{
		Kind: "explanation", Title: e.B + " against " + e.A + ", and why", Data: func() any { return newData(e) }, Records: func() document.Records { return records(e) },
		Whole: "touchstone explain " + e.A + " " + e.B + " -o json",
	}
	for i := range e.Benchmarks {
		b := &e.Benchmarks[i]
		s := document.Section{ID: "benchmark/" + b.Title(), Title: b.Title()}
		for n := range b.Phases {
			p := &b.Phases[n]
			if p.Reason == "" {
				d.Answer = append(d.Answer, document.Text{Text: summary(e, p)})
			}
			s.Blocks = append(s.Blocks, phase(e, b, p, terminalRows))
		}
		d.Blocks = append(d.Blocks, s)
	}
	if d.Answer == nil {
		d.Answer = []document.Text{{Text: "No cause is found: " + e.Benchmarks[0].Phases[0].Name + ": " + e.Benchmarks[0].Phases[0].Reason + "."}}
	}
	d.Blocks = append(d.Blocks, document.Text{Text: Method, Tone: document.Faint})
	return d
}

// Pair is the section of a benchmark for the page of a report: the calls that differ between two targets as in [Document], and the reasons of the calls
// without causes.
func Pair(e *explain.Explanation, b *explain.Benchmark) document.Section {
	s := document.Section{Title: e.B + " against " + e.A, Folded: true}
	var notes []string
	var rest document.List
	for i := range b.Phases {
		p := &b.Phases[i]
		if p.Differs() {
			notes = append(notes, p.Name+" "+signed(p.Difference.Median))
		}
		if p.Reason == "" {
			s.Blocks = append(s.Blocks, phase(e, b, p, pageRows))
		} else {
			rest.Items = append(rest.Items, document.Item{Span: document.Span{Text: p.Name + ": " + p.Reason}})
		}
	}
	if s.Note = strings.Join(notes, ", "); notes == nil {
		s.Note = "no difference is shown"
	}
	if rest.Items != nil {
		rest.Title = "Calls without causes:"
		s.Blocks = append(s.Blocks, rest)
	}
	return s
}

// command is the command line that has all of a benchmark.
func command(e *explain.Explanation, b *explain.Benchmark) string {
	return fmt.Sprintf("touchstone explain %s %s --run %s --benchmark %s -o json", e.A, e.B, e.Run, b.Name)
}

// Method is the text below the tables.
const Method = "The difference of a call is of the untraced trials. Its parts are of traced trials, and no moment counts twice. Running time is scaled to the untraced trials. A part is a cause, and a count is " +
	"shown, if the ranges over the traces of the two targets do not overlap. The rest is not spread over the causes. docs/explain.md has the method."

// order names the target that takes longer, and the other one.
func order(e *explain.Explanation, p *explain.Phase) (target, reference string) {
	if p.Difference.Median < 0 {
		return e.A, e.B
	}
	return e.B, e.A
}

// mostCauses is the number of causes that a summary names. The table has all.
const mostCauses = 3

// summary is the answer for a phase: its difference, the largest causes, and the sums of the others and of the rest.
func summary(e *explain.Explanation, p *explain.Phase) string {
	target, reference := order(e, p)
	var causes []string
	var places []string
	rest, sum := 0, 0.0
	for _, t := range p.Causes() {
		if len(causes) == mostCauses {
			rest, sum = rest+1, sum+t.Difference
			continue
		}
		text := fmt.Sprintf("%s %s", signed(t.Difference), cause(&t))
		if place := t.Step + " " + t.Component; !slices.Contains(places, place) {
			places = append(places, place)
			text += beside(p, &t)
		}
		causes = append(causes, text)
	}
	text := fmt.Sprintf("%s: %s takes %s longer than %s", p.Name, target, quantity.Text(math.Abs(p.Difference.Median), result.Seconds), reference)
	if causes == nil {
		return text + ". No part of its time is a cause."
	}
	if rest > 0 {
		causes = append(causes, fmt.Sprintf("%s in %s", signed(sum), wording.Counted(rest, "smaller part")))
	}
	return fmt.Sprintf("%s. Of %s: %s; %s unexplained.", text, signed(p.Difference.Median), strings.Join(causes, "; "), signed(p.Unexplained()))
}

// cause names a part of the time.
func cause(t *explain.Time) string {
	if t.Component == explain.Outside {
		return "outside of the target's processes"
	}
	return fmt.Sprintf("%s, %s in %s", withCalls(t), t.Component, t.Step)
}

// mostCalls is the number of system calls that a cause names.
const mostCalls = 2

// withCalls is a cause with the system calls that it is made of: "other call (umount2, mount)".
func withCalls(t *explain.Time) string {
	if len(t.Calls) == 0 {
		return cmp.Or(string(t.Cause), quantity.None)
	}
	return fmt.Sprintf("%s (%s)", t.Cause, strings.Join(t.Calls[:min(len(t.Calls), mostCalls)], ", "))
}

// beside are the programs, mounts and fsyncs that differ at the place of a cause.
func beside(p *explain.Phase, t *explain.Time) string {
	var words []string
	for _, kind := range []explain.Kind{explain.Program, explain.Mount, explain.Sync} {
		sum := int64(0)
		for i := range p.Counts {
			if c := &p.Counts[i]; c.Kind == kind && c.Step == t.Step && c.Component == t.Component {
				sum += c.Difference()
			}
		}
		if sum != 0 {
			words = append(words, quantity.TrueMinus(fmt.Sprintf("%+d ", sum))+string(kind))
		}
	}
	if words == nil {
		return ""
	}
	return " (with " + strings.Join(words, ", ") + ")"
}

// signed spells a difference with its sign.
func signed(seconds float64) string {
	text := quantity.Signed(seconds, result.Seconds)
	if seconds > 0 {
		return "+" + text
	}
	return text
}

// phase is the section of a phase.
func phase(e *explain.Explanation, b *explain.Benchmark, p *explain.Phase, limit rows) document.Block {
	s := document.Section{Title: p.Name}
	s.Blocks = append(s.Blocks, document.Text{Text: fmt.Sprintf(
		"%s %s, %s %s: %s (95 %% interval %s), %s.", e.A, quantity.Text(p.Base, result.Seconds), e.B, quantity.Text(p.Value, result.Seconds), signed(p.Difference.Median),
		quantity.DifferenceInterval(p.Difference, result.Seconds), quantity.VerdictWord(p.Comparison.Verdict, result.Metric{Unit: result.Seconds, Better: result.Lower}),
	)})
	if p.Reason != "" {
		s.Blocks = append(s.Blocks, document.Text{Text: "No causes: " + p.Reason + ".", Tone: document.Faint})
	} else {
		s.Blocks = append(s.Blocks, times(e, p, limit.causes))
	}
	if len(p.Counts) > 0 {
		s.Blocks = append(s.Blocks, counts(e, b, p, limit)...)
	}
	return s
}

// times is the table of the causes and of the rest.
func times(e *explain.Explanation, p *explain.Phase, limit int) document.Block {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Step", "Component", "Cause", e.A, e.B, "Difference")}}
	causes := p.Causes()
	for _, part := range causes[:min(len(causes), limit)] {
		t.Rows = append(t.Rows, document.Cells(
			part.Step, part.Component, withCalls(&part), seconds(part.A), seconds(part.B), signed(part.Difference),
		))
	}
	if len(causes) > limit {
		sum := 0.0
		for _, part := range causes[limit:] {
			sum += part.Difference
		}
		t.Rows = append(t.Rows, document.Cells("", "", wording.Counted(len(causes)-limit, "smaller part"), "", "", signed(sum)))
	}
	t.Rows = append(t.Rows, document.Cells("", "", "unexplained", "", "", signed(p.Unexplained())))
	return t
}

// seconds spells a range of times.
func seconds(s explain.Seconds) string { return quantity.Extent(s.Least, s.Most, result.Seconds) }

// counts is the table of the counts that differ.
func counts(e *explain.Explanation, b *explain.Benchmark, p *explain.Phase, limit rows) []document.Block {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Step", "Component", "Count", e.A, e.B, "Difference")}}
	list := p.Counts
	var note []document.Block
	if len(list) > limit.counts {
		rest := list[limit.counts:]
		list = list[:limit.counts]
		if words := min(len(rest), limit.words); words > 0 {
			note = append(note, document.Text{Text: fmt.Sprintf("Also different, from %s to %s: %s.", e.A, e.B, inWords(rest[:words]))})
			rest = rest[words:]
		}
		if len(rest) > 0 {
			note = append(note, document.Text{Text: fmt.Sprintf("%s more: %s", wording.Counted(len(rest), "count"), command(e, b)), Tone: document.Faint})
		}
	}
	for i := range list {
		c := &list[i]
		t.Rows = append(t.Rows, document.Cells(
			c.Step, c.Component, counted(c), spelled(c.A), spelled(c.B), quantity.TrueMinus(fmt.Sprintf("%+d", c.Difference())),
		))
	}
	return append([]document.Block{t}, note...)
}

// inWords lists counts by step and component: "create runtime: openat 14 → 22, read 9 → 12–14; create container: mount 8 → 0".
func inWords(list []explain.Count) string {
	var places []string
	texts := map[string][]string{}
	for i := range list {
		c := &list[i]
		place := c.Step + " " + c.Component
		if texts[place] == nil {
			places = append(places, place)
		}
		texts[place] = append(texts[place], fmt.Sprintf("%s %s → %s", strings.TrimPrefix(counted(c), string(explain.Call)+" "), spelled(c.A), spelled(c.B)))
	}
	for i, place := range places {
		places[i] = place + ": " + strings.Join(texts[place], ", ")
	}
	return strings.Join(places, "; ")
}

// counted names a count: "exec runc", "mount".
func counted(c *explain.Count) string {
	if c.Name == "" || c.Name == string(c.Kind) {
		return string(c.Kind)
	}
	return string(c.Kind) + " " + c.Name
}

// spelled spells a range of counts: "52", or "259–313".
func spelled(r analysis.Range) string {
	if r.Least == r.Most {
		return fmt.Sprint(r.Least)
	}
	return fmt.Sprintf("%d–%d", r.Least, r.Most)
}
