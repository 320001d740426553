package counts

import (
	"fmt"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Kind marks the JSON of a comparison with a file. docs/schema/counts.schema.json is its schema.
const Kind = "touchstone-counts"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of a comparison with a file.
type Data struct {
	Kind     string        `json:"kind" doc:"Kind of the document."`
	Version  int           `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	File     string        `json:"file" doc:"Name of the file."`
	Expected counts.Origin `json:"expected" doc:"The traces of the file."`
	Now      counts.Origin `json:"now" doc:"The traces that are compared with the file."`
	Answer   stats.Answer  `json:"answer" doc:"The answer: worse if a stable count differs in either direction. The exit codes are 4, 0 and 6."`
	Warnings []string      `json:"warnings" doc:"Differences of the machines that can change counts."`
	Diff     string        `json:"diff" doc:"The changed lines of the file; empty without a change."`
	Missing  []missingData `json:"missing" doc:"The benchmarks of the file without a trace."`
	Cells    []counts.Cell `json:"cells" doc:"The compared benchmarks. Side A is the file."`
}

type missingData struct {
	Benchmark string `json:"benchmark" doc:"The benchmark with its parameters."`
	Reason    string `json:"reason" doc:"The reason."`
}

// Document is the document of a comparison with a file.
func Document(d *counts.Deviation) *document.Document {
	answer := d.Answer()
	out := &document.Document{
		Kind: "counts", Title: fmt.Sprintf("Counts of %s against %s", d.Now.Target, d.File), Answer: []document.Text{{Text: sentence(d), Tone: document.AnswerTone(answer)}},
		Checks: checks(d), Suite: "counts " + d.Now.Target, Data: func() any { return data(d) }, Records: func() document.Records { return records(d) }, Whole: "touchstone counts check -o json",
	}
	for _, text := range d.Warnings() {
		out.Notes = append(out.Notes, document.Text{Text: text, Tone: document.Alarm})
	}
	out.Blocks = append(out.Blocks, document.Facts{Items: []document.Fact{
		{Name: "File", Text: fmt.Sprintf("%s: %s, %s, kernel %s, %s, Touchstone %s", d.File, d.Expected.Target, d.Expected.Runtime, d.Expected.Kernel, d.Expected.Arch, d.Expected.Tool)},
		{Name: "Now", Text: fmt.Sprintf("%s, %s, kernel %s, %s, Touchstone %s", d.Now.Target, d.Now.Runtime, d.Now.Kernel, d.Now.Arch, d.Now.Tool)},
	}}, benchmarks(d))
	if diff := d.Diff(); diff != "" {
		out.Blocks = append(out.Blocks, document.Section{ID: "diff", Title: "Difference", Blocks: []document.Block{document.Verbatim{Text: diff}}})
	}
	if list := exclusions(d.Cells); list.Items != nil {
		out.Blocks = append(out.Blocks, list)
	}
	return out
}

// benchmarks is a table of the benchmarks of the file.
func benchmarks(d *counts.Deviation) document.Section {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Benchmark", "Traces of the file", "Traces now", "Answer")}}
	for i := range d.Cells {
		c := &d.Cells[i]
		t.Rows = append(t.Rows, document.Cells(c.Title(), strconv.Itoa(c.TracesA), strconv.Itoa(c.TracesB), words[c.Answer()]))
	}
	for _, m := range d.Missing {
		t.Rows = append(t.Rows, document.Cells(m.Title(), quantity.None, quantity.None, "no counts: "+m.Reason))
	}
	return document.Section{ID: "benchmarks", Title: "Benchmarks", Blocks: []document.Block{t}}
}

// words are the answers in the words of a comparison with a file.
var words = map[stats.Answer]string{stats.Worse: "differs", stats.Inconclusive: "seems to differ in few traces", stats.NotWorse: "no stable count differs"}

func sentence(d *counts.Deviation) string {
	benchmarks := wording.Counted(len(d.Cells), "benchmark")
	switch d.Answer() {
	case stats.Worse:
		return fmt.Sprintf("Counts differ from the file. If the change is right, renew it: touchstone counts record %s --build %s", d.File, d.Now.Target)
	case stats.Inconclusive:
		return "Inconclusive, which is no pass: " + reason(d) + "."
	case stats.NotWorse:
	}
	return fmt.Sprintf("No stable count of %s differs from the file.", benchmarks)
}

// reason is the reason of an inconclusive answer.
func reason(d *counts.Deviation) string {
	if len(d.Missing) > 0 {
		return fmt.Sprintf("%s has no counts: %s", d.Missing[0].Title(), d.Missing[0].Reason)
	}
	return fmt.Sprintf("counts seem to differ, and fewer than %d traces do not show it", counts.ShownBy)
}

// checks are the benchmarks of the file.
func checks(d *counts.Deviation) []document.Check {
	list := []document.Check{}
	add := func(title string, answer stats.Answer, message string) {
		list = append(list, document.Check{Suite: "counts", Name: title + " on " + d.Now.Target, Status: document.AnswerStatus(answer), Answer: string(answer), Message: message})
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		message := "no stable count differs from " + d.File
		if changes := c.Spelled(); changes != "" {
			message = changes
		}
		add(c.Title(), c.Answer(), message)
	}
	for _, m := range d.Missing {
		add(m.Title(), stats.Inconclusive, m.Reason)
	}
	return list
}

// records has a row for each changed count.
func records(d *counts.Deviation) document.Records {
	r := document.Records{Columns: []string{"benchmark", "params", "target", "step", "component", "call", "expected_least", "expected_most", "least", "most", "varies", "moved"}}
	for i := range d.Cells {
		c := &d.Cells[i]
		for _, count := range c.Changes {
			r.Rows = append(r.Rows, []any{
				c.Name, c.Params, c.TargetB, count.StepText(), count.Component, count.Name, int(count.A.Least), int(count.A.Most), int(count.B.Least), int(count.B.Most), count.Varies, count.Moved,
			})
		}
	}
	return r
}

func data(d *counts.Deviation) Data {
	out := Data{
		Kind: Kind, Version: schemaVersion, File: d.File, Expected: d.Expected.Origin, Now: d.Now, Answer: d.Answer(), Warnings: append([]string{}, d.Warnings()...), Diff: d.Diff(),
		Missing: []missingData{}, Cells: append([]counts.Cell{}, d.Cells...),
	}
	for _, m := range d.Missing {
		out.Missing = append(out.Missing, missingData{m.Title(), m.Reason})
	}
	return out
}
