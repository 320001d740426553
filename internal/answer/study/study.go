// Package study makes the document of a reproduction: the claims of a paper with their verdicts first, then its tables with our values. A page also has
// each comparison of a claim, the ratios of the tables as drawings, the figures of the paper, and the runs.
package study

import (
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// mostComparisons is the largest number of comparisons of a claim.
const mostComparisons = 2

// Document is the document of a reproduction. links are the addresses of the reports of the runs, by run; an empty one is left out.
func Document(r *reproduce.Reproduction, links []string) *document.Document {
	d := &document.Document{Kind: "reproduction", Title: "Touchstone, " + r.Heading(), Checks: checks(r), Suite: "reproduce", Records: func() document.Records { return records(r) }, Data: func() any { return data(r) }, Whole: "touchstone reproduce " + r.Paper.Name}
	for _, note := range []string{r.Emulation(), r.Origin()} {
		if note != "" {
			d.Notes = append(d.Notes, document.Text{Text: note, Tone: document.Alarm})
		}
	}
	facts := document.Facts{Items: []document.Fact{{Name: "Paper", Text: r.Paper.Citation()}}}
	for i := range r.Runs {
		first := &r.Runs[i].Runs[0]
		facts.Items = append(facts.Items, document.Fact{Name: "Run", Text: first.Name + ", " + description(first)})
		if i == 0 {
			facts.Items = append(facts.Items, document.Fact{Name: "Host", Text: runs.Host(first)})
		}
		facts.Items = append(facts.Items, document.Fact{Name: "Targets", Text: runs.Targets(first)})
	}
	d.Blocks = append(append(d.Blocks, facts, claims(r)), matrix(r)...)
	for i := range r.Tables {
		d.Blocks = append(d.Blocks, table(&r.Tables[i]))
	}
	if r.Figures != nil {
		d.Blocks = append(d.Blocks, figures(r))
	}
	d.Blocks = append(d.Blocks, runTable(r, links))
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
	s := document.Section{ID: "claims", Title: "Claims: " + r.Summary(), Short: "Claims"}
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
		contraries := contrary(c)
		examples := contraries[:min(len(contraries), mostComparisons)]
		for _, k := range examples {
			fact.Notes = append(fact.Notes, document.Span{Text: sentence(k) + "; claimed: " + c.Stated()})
		}
		if rest := len(contraries) - len(examples); rest > 0 {
			fact.Notes = append(fact.Notes, document.Span{Text: fmt.Sprintf("and %d more", rest)})
		}
		fact.Details = []document.Item{reading(c, examples)}
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

// contrary is the comparisons with the verdict of a claim that does not agree.
func contrary(c *reproduce.Claim) []*reproduce.Comparison {
	var list []*reproduce.Comparison
	for i := range c.Comparisons {
		if k := &c.Comparisons[i]; c.Verdict != reproduce.Agrees && k.Compared != nil && k.Verdict == c.Verdict {
			list = append(list, k)
		}
	}
	return list
}

func sentence(k *reproduce.Comparison) string {
	return fmt.Sprintf("%s: %s is %s against %s", reproduce.Title(k.Of), k.Target, k.Ratio(), k.Other)
}

// reading is the claim as it was compared, with its comparisons except some.
func reading(c *reproduce.Claim, exceptions []*reproduce.Comparison) document.Item {
	out := document.Item{Span: document.Span{Text: "read as: " + c.Stated(), Tone: document.Faint}}
	if c.Note != "" {
		out.Text += " (" + c.Note + ")"
	}
	for i := range c.Comparisons {
		k := &c.Comparisons[i]
		if slices.Contains(exceptions, k) {
			continue
		}
		line := sentence(k)
		if k.Compared == nil {
			line = fmt.Sprintf("%s: %s against %s", reproduce.Title(k.Of), k.Target, k.Other)
		}
		if k.Reason != c.Reason && k.Reason != "" {
			line += "; " + k.Reason
		}
		if k.Verdict != c.Verdict {
			line = string(k.Verdict) + ": " + line
		}
		out.Lines = append(out.Lines, line)
	}
	switch n := len(out.Lines); {
	case n > 0 && len(exceptions) > 0:
		out.Text += "; " + wording.Counted(n, "other comparison")
	case n > 0:
		out.Text += "; " + wording.Counted(n, "comparison")
	}
	return out
}

// runTable lists the runs with the outcomes of their targets.
func runTable(r *reproduce.Reproduction, links []string) document.Block {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Target", "Version", "Trials ok")}}
	var caveats document.List
	for i := range r.Runs {
		run := &r.Runs[i].Runs[0]
		title := document.Span{Text: run.Name}
		if i < len(links) {
			title.Link = links[i]
		}
		t.Rows = append(t.Rows, []document.Cell{{title, {Text: description(run), Tone: document.Faint}}})
		for _, target := range run.Targets {
			row := document.Cells(target.Name, target.Version, fmt.Sprintf("%d of %d", target.OK, target.Total))
			if target.Unavailable != "" && target.OK == 0 {
				row = document.Cells(target.Name, "Not available: "+target.Unavailable)
			}
			t.Rows = append(t.Rows, row)
		}
		for _, caveat := range run.Caveats {
			if !slices.ContainsFunc(caveats.Items, func(i document.Item) bool { return i.Text == caveat }) {
				caveats.Items = append(caveats.Items, document.Item{Span: document.Span{Text: caveat}})
			}
		}
	}
	s := document.Section{ID: "runs", Title: "Runs", Detail: true, Blocks: []document.Block{t}}
	if caveats.Items != nil {
		s.Blocks = append(s.Blocks, caveats)
	}
	return s
}

// description is a run without its name.
func description(r *analysis.Run) string {
	return fmt.Sprintf("%s, %s, %s", r.ID, runs.Started(r), finding.State(r))
}
