package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// targets is the table of the targets of the only run.
func targets(r *analysis.Run) document.Block {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Target", "Version", "Isolation", "Cgroup", "Trials ok", "Notes")}}
	for i := range r.Targets {
		target := &r.Targets[i]
		if target.Unavailable != "" && target.OK == 0 {
			t.Rows = append(t.Rows, document.Cells(target.Name, "Not available: "+target.Unavailable))
			continue
		}
		cgroup := target.Cgroup
		if target.Rootless {
			cgroup += ", rootless"
		}
		version := lines(target.Version)
		if target.Binary != "" {
			version = append(version, document.Span{Text: target.Binary, Tone: document.Faint})
		}
		for _, program := range target.Installed {
			version = append(version, document.Span{Text: fmt.Sprintf("%s: %s, %s", program.Program, program.Origin, program.Digest), Tone: document.Faint})
		}
		t.Rows = append(t.Rows, []document.Cell{
			lines(target.Name), version, lines(string(target.Isolation)), lines(cgroup), lines(fmt.Sprintf("%d of %d", target.OK, target.Total)), lines(strings.Join(target.Notes, "; ")),
		})
	}
	return document.Section{ID: "targets", Title: "Targets", Detail: true, Blocks: []document.Block{t}}
}

// host is all facts about the host of the only run, and the version of the tool.
func host(r *analysis.Run) document.Block {
	facts := document.Facts{Items: []document.Fact{{Name: "Tool", Text: strings.TrimSpace(r.Tool.String() + " " + r.Tool.Commit)}}}
	for _, f := range fact.Host(&r.Run) {
		if f.Text != "" {
			facts.Items = append(facts.Items, document.Fact{Name: f.Name(), Text: f.Text})
		}
	}
	return document.Section{ID: "host", Title: "Host", Detail: true, Blocks: []document.Block{facts}}
}

// outputs are the outputs of the trials without a number.
func outputs(groups []analysis.MissingGroup) []document.Block {
	var blocks []document.Block
	for _, g := range groups {
		if g.Output != "" {
			blocks = append(blocks, text(g.Title()+" on "+strings.Join(g.Targets, ", ")+":"), document.Verbatim{Text: g.Output})
		}
	}
	if blocks == nil {
		return nil
	}
	return []document.Block{document.Section{Title: "Their output", Detail: true, Blocks: blocks}}
}

// outcomes count the trials of each target. Targets with the same outcome share a line.
func outcomes(s *analysis.Section) document.Block {
	type outcome struct {
		counts, why string
		targets     []string
	}
	var list []outcome
	for i := range s.Targets {
		o := &s.Targets[i]
		next := outcome{counts: o.Counts(), why: o.Why()}
		if o.Disturbed > 0 {
			next.counts += fmt.Sprintf(" (%d disturbed)", o.Disturbed)
		}
		index := slices.IndexFunc(list, func(item outcome) bool { return item.counts == next.counts && item.why == next.why })
		if index < 0 {
			index = len(list)
			list = append(list, next)
		}
		list[index].targets = append(list[index].targets, o.Target)
	}
	var facts document.Facts
	for _, o := range list {
		f := document.Fact{Name: strings.Join(o.targets, ", "), Text: o.counts}
		if o.why == "" && len(o.targets) > mostNamed {
			f.Name = wording.Counted(len(o.targets), "target")
		}
		if len(o.targets) > 1 {
			f.Text += " each"
		}
		if o.why != "" {
			f.Notes = []document.Span{{Text: o.why, Tone: document.Faint}}
		}
		facts.Items = append(facts.Items, f)
	}
	return facts
}

// mostNamed is the largest number of targets that a line names if they have the same counts and nothing is missing.
const mostNamed = 4

// extents is the table of the targets and blocks of all benchmarks in several runs.
func (b *builder) extents() document.Block {
	head := []document.Cell{lines("Benchmark")}
	for i := range b.report.Runs {
		head = append(head, lines(b.report.Runs[i].Label))
	}
	t := document.Table{Listing: true, Rows: [][]document.Cell{head}}
	for i := range b.report.Coverage {
		f := finding.Extent(&b.report.Coverage[i])
		t.Rows = append(t.Rows, document.Cells(append([]string{b.report.Coverage[i].Title()}, f.Values...)...))
	}
	return document.Section{Title: "Targets and blocks of each benchmark", Folded: true, Detail: true, Blocks: []document.Block{t}}
}
