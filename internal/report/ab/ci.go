package ab

import (
	"fmt"
	"io"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/ci"
)

// statuses are the answers as results of test cases.
var statuses = map[Answer]ci.Status{Worse: ci.Failed, NotWorse: ci.Passed, Inconclusive: ci.Undecided}

// JUnit writes the values as test cases, a suite for each benchmark. A value that is worse than the margin is a failure, and an inconclusive one
// an error.
func (d *Document) JUnit(w io.Writer) error {
	var cases []ci.Case
	for i := range d.Values {
		v := &d.Values[i]
		cases = append(cases, ci.Case{
			Suite: v.Title(), Name: fmt.Sprintf("%s on %s against %s", v.Metric, d.B.Target, d.A.Target),
			Status: statuses[v.Answer], Answer: string(v.Answer), Message: d.evidence(v),
		})
	}
	return ci.WriteJUnit(w, "touchstone ab "+d.A.Target+" "+d.B.Target, cases)
}

// evidence is the reason of a value's answer in words.
func (d *Document) evidence(v *Outcome) string {
	var parts []string
	if v.Reason != "" {
		parts = append(parts, v.Reason)
	}
	if v.Ratio != nil {
		parts = append(parts, fmt.Sprintf("B / A is %s, and its interval %s", v.RatioText(), v.IntervalText()))
	}
	if d.Unfinished != "" && v.Answer == Inconclusive {
		parts = append(parts, d.Unfinished)
	}
	return fmt.Sprintf("margin %s: %s", quantity.Percent(d.Margin), strings.Join(parts, "; "))
}

// Markdown writes the comparison for a comment of a pull request, or for a summary: the answer, the values, the sides and the runs.
func (d *Document) Markdown(w io.Writer) error {
	m := ci.Markdown{Whole: "ab.json"}
	m.Heading(d.A.Target + " against " + d.B.Target)
	m.Paragraph("answer: " + d.Sentence())
	var rows [][]string
	for i := range d.Values {
		v := &d.Values[i]
		rows = append(rows, []string{v.AnswerText(len(d.Runs)), v.Title(), v.Metric, v.RatioText(), v.IntervalText(), v.BetweenText(), v.Reason})
	}
	m.Table([]string{"Answer", "Benchmark", "Metric", "B / A", "Interval", "Between runs", "Reason"}, rows)
	for _, side := range d.sides() {
		m.Paragraph(strings.Join(side, " "))
	}
	m.Paragraph(d.Extent())
	for _, text := range []string{d.Unfinished, d.Advice()} {
		if text != "" {
			m.Note(text)
		}
	}
	return m.Write(w)
}
