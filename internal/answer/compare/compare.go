// Package compare makes the document of a comparison of runs: the answer of the gates, the sides, and the metrics that show something
// before all others.
package compare

import (
	"fmt"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/counts"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Document is the document of a comparison.
func Document(c *sides.Comparison) *document.Document {
	d := &document.Document{
		Kind: "comparison", Title: c.NameA + " against " + c.NameB, Answer: answer(c), Checks: checks(c), Records: func() document.Records { return records(c) }, Data: func() any { return data(c) }, Suite: "compare " + c.NameA + " " + c.NameB, Whole: "touchstone compare -o table",
	}
	for _, note := range c.Notes {
		d.Notes = append(d.Notes, document.Text{Text: note, Tone: document.Alarm})
	}
	d.Blocks = append(d.Blocks, document.Facts{Items: []document.Fact{side("A", c.NameA, c.A), side("B", c.NameB, c.B)}}, matrix(c), runs(c))
	d.Blocks = append(d.Blocks, differences(c)...)
	d.Blocks = append(d.Blocks, gates(c)...)
	d.Blocks = append(d.Blocks, counts.Section(c.Counts)...)
	d.Blocks = append(d.Blocks, metrics(c)...)
	d.Blocks = append(d.Blocks, oneSided(c)...)
	return d
}

// answer is the answer of the gates if there are some, and the number of differences.
func answer(c *sides.Comparison) []document.Text {
	var texts []document.Text
	if gated := c.GateSummary(); gated != "" {
		texts = append(texts, document.Text{Text: gated, Tone: document.AnswerTone(c.Outcome())})
	}
	return append(texts, document.Text{Text: c.Summary()})
}

func side(letter, name string, runs []sides.Run) document.Fact {
	return document.Fact{Name: letter, Text: name + ", " + wording.Counted(len(runs), "run")}
}

// runs lists the runs of both sides.
func runs(c *sides.Comparison) document.Block {
	t := listing("Side", "Run", "Started", "Host", "Plan", "Trials")
	for _, side := range []struct {
		letter string
		runs   []sides.Run
	}{{"A", c.A}, {"B", c.B}} {
		for _, r := range side.runs {
			t.Rows = append(t.Rows, document.Cells(side.letter, r.ID, r.Started, r.Host, r.Plan, strconv.Itoa(r.Trials)))
		}
	}
	return document.Section{ID: "runs", Title: wording.Counted(len(c.A)+len(c.B), "run"), Folded: true, Blocks: []document.Block{t}}
}

// differences lists the facts that differ and were allowed.
func differences(c *sides.Comparison) []document.Block {
	var l document.List
	for _, d := range c.Differences {
		l.Items = append(l.Items, document.Item{Span: document.Span{Text: d.String()}})
	}
	if l.Items == nil {
		return nil
	}
	return []document.Block{document.Section{ID: "differences", Title: "The runs differ, and the comparison was asked for nevertheless", Blocks: []document.Block{l}}}
}

// gates lists the gated metrics, the worst answer first.
func gates(c *sides.Comparison) []document.Block {
	t := listing("Answer", "Metric", "Gate", "B against A", "95 % interval", "Reason")
	for _, answer := range stats.Answers() {
		for i := range c.Gates {
			k := &c.Gates[i]
			if k.Answer != answer {
				continue
			}
			ratio, interval := quantity.None, quantity.None
			if k.Index >= 0 {
				ratio, interval = quantity.ChangeBeside(c.Cells[k.Index].CI, c.Cells[k.Index].Ratio), quantity.ChangeInterval(c.Cells[k.Index].CI)
			}
			cells := document.Cells(string(answer), subject(k), k.Gate.String(), ratio, interval, k.Why)
			cells[0][0].Tone = document.AnswerTone(answer)
			t.Rows = append(t.Rows, cells)
		}
		for i := range c.CountChecks() {
			k := &c.CountChecks()[i]
			if k.Answer != answer {
				continue
			}
			cells := document.Cells(string(answer), counts.Subject(k), k.Gate, quantity.None, quantity.None, k.Reason)
			cells[0][0].Tone = document.AnswerTone(answer)
			t.Rows = append(t.Rows, cells)
		}
	}
	if len(t.Rows) == 1 {
		return nil
	}
	return []document.Block{document.Section{ID: "gates", Title: "Gates", Blocks: []document.Block{t}}}
}

// subject names the metric of a check.
func subject(k *sides.Check) string {
	if k.Metric.Name == "" {
		return "no metric"
	}
	return fmt.Sprintf("%s %s on %s", title(k), k.Metric.Name, k.Target)
}

func title(k *sides.Check) string { return analysis.Key{Name: k.Benchmark, Params: k.Params}.Title() }

// oneSided lists what only one side has.
func oneSided(c *sides.Comparison) []document.Block {
	t := listing("Side", "Benchmark", "Target", "Reason")
	for i := range c.OneSided {
		o := &c.OneSided[i]
		cells := document.Cells(o.Has, o.Title(), o.Target, o.Why)
		cells[3][0].Tone = document.Faint
		t.Rows = append(t.Rows, cells)
	}
	if len(c.OneSided) == 0 {
		return nil
	}
	return []document.Block{document.Section{ID: "one-sided", Title: wording.Counted(len(c.OneSided), "benchmark") + " only on one side", Folded: true, Blocks: []document.Block{t}}}
}

// checks are the gated metrics, with a suite for each benchmark.
func checks(c *sides.Comparison) []document.Check {
	var list []document.Check
	for i := range c.Gates {
		k := &c.Gates[i]
		suite, name := title(k), k.Metric.Name+" on "+k.Target
		if k.Metric.Name == "" {
			suite, name = "gates", k.Gate.String()
		}
		list = append(list, document.Check{
			Suite: suite, Name: name, Status: document.AnswerStatus(k.Answer), Answer: string(k.Answer), Message: fmt.Sprintf("%s: %s", k.Gate, k.Why),
		})
	}
	return append(list, counts.Checks(c.Counts)...)
}

// listing is a table of records without rows.
func listing(columns ...string) document.Table {
	return document.Table{Rows: [][]document.Cell{document.Cells(columns...)}, Listing: true}
}
