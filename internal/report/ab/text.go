package ab

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/touchstone-bench/touchstone/internal/quantity"
)

// Text writes the comparison for a terminal: the sides, a table of the values, and the answer.
func (d *Document) Text(w io.Writer) error {
	var b strings.Builder
	line := func(text string) { b.WriteString(quantity.OneLine(text) + "\n") }
	for _, side := range d.sides() {
		line(strings.Join(side, "  "))
	}
	line(d.Extent())
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = quantity.OneLine(cells[i])
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	row("BENCHMARK", "METRIC", "B / A", "INTERVAL", "BETWEEN RUNS", "ANSWER")
	for i := range d.Values {
		v := &d.Values[i]
		row(v.Title(), v.Metric, v.RatioText(), v.IntervalText(), v.BetweenText(), v.AnswerText(len(d.Runs)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	if d.Unfinished != "" {
		line(d.Unfinished)
	}
	for i := range d.Values {
		if v := &d.Values[i]; v.Reason != "" {
			line(fmt.Sprintf("%s %s: %s", v.Title(), v.Metric, v.Reason))
		}
	}
	line("answer: " + d.Sentence())
	if advice := d.Advice(); advice != "" {
		line(advice)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sides are the two builds in words: the letter, the target, and the version and the binary as far as they are known.
func (d *Document) sides() [][]string {
	var all [][]string
	for _, side := range []struct {
		name string
		Build
	}{{"A", d.A}, {"B", d.B}} {
		parts := []string{side.name, side.Target}
		for _, part := range []string{side.Version, side.Binary} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		all = append(all, parts)
	}
	return all
}
