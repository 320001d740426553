// Package ab makes the document of a comparison of two builds: the answer, the values with their intervals, and for pages a figure of each value
// and the ratios of each run.
package ab

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/answer/counts"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Document is the document of a comparison of two builds.
func Document(c *ab.Document) *document.Document {
	d := &document.Document{Kind: "ab", Title: c.Question(), Answer: answer(c), Checks: checks(c), Records: func() document.Records { return records(c) }, Data: func() any { return c }, Suite: "ab " + c.A.Target + " " + c.B.Target, Whole: "ab.json"}
	if c.Unfinished != "" {
		d.Notes = append(d.Notes, document.Text{Text: "Runs are missing: " + c.Unfinished + ".", Tone: document.Alarm})
	}
	d.Blocks = append(d.Blocks, facts(c))
	d.Blocks = append(d.Blocks, counts.Section(c.Counts)...)
	if c.Untimed {
		return d
	}
	d.Blocks = append(append(d.Blocks, matrix(c)...), values(c))
	d.Blocks = append(append(d.Blocks, plots(c)...), runs(c), method(c))
	return d
}

func answer(c *ab.Document) []document.Text {
	texts := []document.Text{{Text: c.Sentence() + ".", Tone: document.AnswerTone(c.Answer)}}
	if advice := c.Advice(); advice != "" {
		texts = append(texts, document.Text{Text: advice + ".", Tone: document.Advice})
	}
	return texts
}

func facts(c *ab.Document) document.Facts {
	var facts document.Facts
	add := func(name string, parts ...string) {
		var words []string
		for _, part := range parts {
			if part != "" {
				words = append(words, part)
			}
		}
		if words != nil {
			facts.Items = append(facts.Items, document.Fact{Name: name, Text: strings.Join(words, ", ")})
		}
	}
	add("A, the old build", c.A.Target, c.A.Version, c.A.Binary)
	add("B, the new build", c.B.Target, c.B.Version, c.B.Binary)
	add("Comparison", strings.ReplaceAll(c.Extent(), "; ", ", "))
	if !c.Started.IsZero() {
		add("Date", c.Started.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	if m := c.Machine; m != nil {
		add("Host", m.Hostname, m.CPU, wording.Counted(m.CPUs, "CPU"))
		add("System", m.OS, "kernel "+m.Kernel)
	}
	add("Tool", strings.TrimSpace("Touchstone "+c.Tool.Version+" "+c.Tool.Commit))
	return facts
}

// values is a table of the values, and the reasons of inconclusive answers.
func values(c *ab.Document) document.Block {
	s := document.Section{ID: "values", Title: "Values"}
	if len(c.Values) == 0 {
		s.Blocks = append(s.Blocks, document.Text{Text: "None."})
		return s
	}
	t := document.Table{Rows: [][]document.Cell{{lines("Benchmark"), lines("Metric"), lines("B / A"), lines("Interval"), lines("Between runs"), lines("Answer")}}, Listing: true}
	var reasons document.List
	for i := range c.Values {
		v := &c.Values[i]
		limit, direction := limitOf(c, v)
		t.Rows = append(t.Rows, []document.Cell{
			lines(v.Title()),
			lines(v.Metric, string(v.Better)+" is better"),
			{{Text: v.RatioText(), Tone: ratioTone(v.Answer)}},
			lines(v.IntervalText(), fmt.Sprintf("worse %s %.4f", direction, limit)),
			lines(v.BetweenText(), fmt.Sprintf("lost %s of A, %s of B", quantity.Percent(v.LostA), quantity.Percent(v.LostB))),
			{{Text: v.AnswerText(len(c.Runs)), Tone: document.AnswerTone(v.Answer)}},
		})
		if v.Reason != "" {
			reasons.Items = append(reasons.Items, document.Item{Span: document.Span{Text: fmt.Sprintf("%s %s: %s", v.Title(), v.Metric, v.Reason)}})
		}
	}
	s.Blocks = append(s.Blocks, t)
	if reasons.Items != nil {
		s.Blocks = append(s.Blocks, reasons)
	}
	return s
}

// ratioTone is the tone of a ratio. It is faint unless the ratio decides something.
func ratioTone(a stats.Answer) document.Tone {
	if a == stats.Inconclusive {
		return document.Faint
	}
	return document.AnswerTone(a)
}

// limitOf is the ratio at the margin. B is worse on the returned side.
func limitOf(c *ab.Document, v *ab.Outcome) (limit float64, direction string) {
	if v.Better == result.Higher {
		return 1 / (1 + c.Margin), "below"
	}
	return 1 + c.Margin, "above"
}

// runs is a table of the runs with their ratios of each value.
func runs(c *ab.Document) document.Block {
	s := document.Section{ID: "runs", Title: "Runs", Detail: true}
	if len(c.Runs) == 0 {
		s.Blocks = append(s.Blocks, document.Text{Text: "No run followed the calibration."})
		return s
	}
	head := []document.Cell{lines("Run"), lines("Time")}
	for i := range c.Values {
		head = append(head, lines(c.Values[i].Metric, c.Values[i].Title()))
	}
	t := document.Table{Rows: [][]document.Cell{head}}
	for i, r := range c.Runs {
		row := []document.Cell{{{Text: runName(i), Link: r.Page}, {Text: r.ID, Tone: document.Faint}}, lines(quantity.Text(r.Took, result.Seconds))}
		for n := range c.Values {
			ratio := &c.Values[n].Ratios[i]
			detail := ratio.Reason
			if detail == "" {
				detail = ratio.IntervalText() + ", " + wording.Counted(ratio.Blocks, "block")
			}
			row = append(row, lines(ratio.RatioText(), detail))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Blocks = append(s.Blocks, document.Text{Text: "B / A of each run, with its own interval."}, t)
	return s
}

func runName(i int) string { return fmt.Sprintf("run %d", i+1) }

func method(c *ab.Document) document.Block {
	s := document.Section{ID: "method", Title: "Method", Detail: true}
	for _, note := range []string{
		"Both builds are targets of each run, compared block by block in shuffled order. Each run has a new session and a new seed, and every second run opens B first. " +
			"A run gives one ratio B / A, the same as in its report.",
		"The runs are the observations. The logarithm of the ratio of all runs is a weighted mean in a model with random effects (Paule and Mandel, 1982), with the interval of Hartung and Knapp (2001). " +
			"“Between runs” is the standard deviation of the ratio from run to run, apart from the variation within runs. A run’s own interval shows only the variation within it.",
		fmt.Sprintf("The interval of a value misses the ratio with a probability of %s, over all looks at the growing series together (Lan and DeMets, 1983). "+
			"Several values share the probability of an error.", quantity.Percent(c.Level)),
		fmt.Sprintf("A value is worse if its whole interval is beyond the margin, not worse if the whole interval is before it, and inconclusive otherwise. "+
			"B is worse if one value is worse, and not worse if all values are. Lost trials help no side: with more than %s of them a side is not the better one.", quantity.Percent(stats.MostLost)),
	} {
		s.Blocks = append(s.Blocks, document.Text{Text: note})
	}
	return s
}

// checks are the values, with a suite for each benchmark.
func checks(c *ab.Document) []document.Check {
	list := append([]document.Check{}, counts.Checks(c.Counts)...)
	for i := range c.Values {
		v := &c.Values[i]
		list = append(list, document.Check{
			Suite: v.Title(), Name: fmt.Sprintf("%s on %s against %s", v.Metric, c.B.Target, c.A.Target),
			Status: document.AnswerStatus(v.Answer), Answer: string(v.Answer), Message: evidence(c, v),
		})
	}
	return list
}

// evidence is the reason of a value's answer in words.
func evidence(c *ab.Document, v *ab.Outcome) string {
	var parts []string
	if v.Reason != "" {
		parts = append(parts, v.Reason)
	}
	if v.Ratio != nil {
		parts = append(parts, fmt.Sprintf("B / A is %s, and its interval %s", v.RatioText(), v.IntervalText()))
	}
	if c.Unfinished != "" && v.Answer == stats.Inconclusive {
		parts = append(parts, c.Unfinished)
	}
	return fmt.Sprintf("margin %s: %s", quantity.Percent(c.Margin), strings.Join(parts, "; "))
}

// lines is a cell with a value, and faint remarks.
func lines(value string, remarks ...string) document.Cell {
	cell := document.Cell{{Text: value}}
	for _, text := range remarks {
		cell = append(cell, document.Span{Text: text, Tone: document.Faint})
	}
	return cell
}
