// Package runs makes the document of a report: the runs and their findings, then a section for each benchmark, then the reasons
// to trust the numbers less.
//
// A number is the median with the larger half of its interval, the cost against the baseline, and the verdict. The HTML and JSON reports
// have the rest.
package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

const (
	// mostItems is the largest number of warnings of one kind.
	mostItems = 4
	// mostBreaches is the largest number of breaches at the top.
	mostBreaches = 8
)

// Document is the document of a report.
func Document(r *report.Report) *document.Document {
	b := &builder{report: r, single: len(r.Runs) == 1, names: map[string]int{}}
	for _, bench := range r.Benchmarks() {
		b.names[bench.Name]++
	}
	d := &document.Document{Kind: "report", Checks: checks(r), Suite: "report", Records: func() document.Records { return records(r) }, Data: func() any { return data(r) }, Whole: "touchstone report"}
	for i := range r.Runs {
		d.Whole += " " + r.Runs[i].ID
	}
	if e := finding.EmulationOf(r.Analysis); e != nil {
		d.Notes = append(d.Notes, document.Text{Text: e.Note, Tone: document.Alarm})
	}
	if b.single {
		for _, note := range finding.Cautions(r.Analysis, 0) {
			d.Notes = append(d.Notes, document.Text{Text: note, Tone: document.Alarm})
		}
	}
	d.Blocks = append(d.Blocks, answers(r.Findings.Answers)...)
	if b.single {
		first := &r.Runs[0]
		name := first.Name
		if name == "" {
			name = "without a name"
		}
		d.Title = first.Tool.String() + ", " + name
		d.Blocks = append(d.Blocks, b.overview()...)
		d.Blocks = append(d.Blocks, document.Section{ID: "run", Title: "Run", Frame: true, Blocks: []document.Block{b.headline(first)}})
		d.Blocks = append(d.Blocks, b.scorecards()...)
	} else {
		d.Title = "Touchstone, " + finding.Heading(r.Analysis) + " side by side"
		d.Blocks = append(d.Blocks, b.headlines()...)
		d.Blocks = append(d.Blocks, b.scorecards()...)
		d.Blocks = append(d.Blocks, b.differences()...)
	}
	d.Blocks = append(d.Blocks, b.findings())
	if !b.single {
		d.Blocks = append(d.Blocks, b.overview()...)
	}
	d.Blocks = append(d.Blocks, b.suites()...)
	if b.single {
		first := &r.Runs[0]
		d.Blocks = append(d.Blocks, b.surface(first)...)
		d.Blocks = append(d.Blocks, b.causes(first)...)
		d.Blocks = append(d.Blocks, traces(first)...)
		d.Blocks = append(d.Blocks, unmeasured(first)...)
		d.Blocks = append(d.Blocks, b.legend()...)
		d.Blocks = append(d.Blocks, frame("warnings", "Warnings", warnings(r.Warnings[0]))...)
		d.Blocks = append(d.Blocks, missing("missing", first)...)
		d.Blocks = append(d.Blocks, targets(first), host(first))
	} else {
		d.Blocks = append(d.Blocks, b.coverage())
		d.Blocks = append(d.Blocks, b.legend()...)
		d.Blocks = append(d.Blocks, frame("warnings", "Warnings", b.summaries())...)
	}
	d.Blocks = append(d.Blocks, b.method())
	return d
}

// answers are the answers of a run, with links to their evidence.
func answers(list []finding.Answer) []document.Block {
	var facts document.Facts
	for _, answer := range list {
		f := document.Fact{Name: answer.Name, Tone: document.Strong, Text: answer.Text}
		for i, key := range answer.Benchmarks {
			if slices.Contains(answer.Benchmarks[:i], key) {
				continue
			}
			f.Details = append(f.Details, document.Item{Span: document.Span{Text: key.Title(), Link: "#benchmark/" + key.Title()}})
		}
		facts.Items = append(facts.Items, f)
	}
	if facts.Items == nil {
		return nil
	}
	return []document.Block{document.Section{ID: "answers", Title: "Answers", Blocks: []document.Block{facts}}}
}

// mostTogether is the largest number of benchmarks in a suite that a page shows at once. The benchmarks of a longer suite are in components, which
// a page shows on request.
const mostTogether = 8

// suites are the sections of all benchmarks.
func (b *builder) suites() []document.Block {
	var blocks []document.Block
	for i := range b.report.Suites {
		s := &b.report.Suites[i]
		var inner, members []document.Block
		var facets []string
		component := ""
		flush := func() {
			if members != nil {
				_, name, _ := strings.Cut(component, ".")
				inner = append(inner, document.Section{ID: "component/" + component, Title: component, Short: name, Note: strings.Join(facets, ", "), Frame: true, Folded: true, Blocks: members})
			}
			members, facets = nil, nil
		}
		for n := range s.Benchmarks {
			bench := &s.Benchmarks[n]
			section := b.benchmark(bench)
			if len(s.Benchmarks) <= mostTogether {
				inner = append(inner, section)
				continue
			}
			next, facet := componentOf(bench.Name)
			if next != component {
				flush()
				component = next
			}
			section.Short = b.label(facet, bench)
			members, facets = append(members, section), append(facets, section.Short)
		}
		flush()
		blocks = append(blocks, frame("suite/"+s.Name, s.Name, inner)...)
	}
	return blocks
}

// frame puts sections under a title that only a page shows.
func frame(id, title string, blocks []document.Block) []document.Block {
	if blocks == nil {
		return nil
	}
	return []document.Block{document.Section{ID: id, Title: title, Frame: true, Blocks: blocks}}
}

// builder makes the parts of a document.
type builder struct {
	report *report.Report
	// single is set for a report of one run.
	single bool
	// names are the numbers of benchmarks with a name.
	names map[string]int
}

// label is a short name of a benchmark, with its parameters if another one has the same name.
func (b *builder) label(name string, bench *analysis.Benchmark) string {
	if b.names[bench.Name] > 1 {
		return strings.TrimSpace(name + " " + bench.Params)
	}
	return name
}

func text(s string) document.Text { return document.Text{Text: s} }

func item(s string) document.Item { return document.Item{Span: document.Span{Text: s}} }

func alarm(s string) document.Text { return document.Text{Text: s, Tone: document.Alarm} }

// headline describes the only run.
func (b *builder) headline(r *analysis.Run) document.Block {
	facts := document.Facts{Items: []document.Fact{
		{Name: "Run", Text: fmt.Sprintf("%s, %s, %s", r.ID, Started(r), finding.State(r))},
		{Name: "Host", Text: Host(r)},
		{Name: "Targets", Text: Targets(r)},
	}}
	for _, image := range r.Images {
		facts.Items = append(facts.Items, document.Fact{Name: "Image", Text: fact.ImageText(image)})
	}
	facts.Items = append(facts.Items, document.Fact{Name: "Trials", Text: b.trials(0)})
	return facts
}

// headlines describe several runs.
func (b *builder) headlines() []document.Block {
	r := b.report
	var facts document.Facts
	for i := range r.Runs {
		run := &r.Runs[i]
		machine := "an unknown machine"
		if run.Host.IsKnown() {
			machine = fmt.Sprintf("%s, %s, cgroup %s", r.Machines[run.Machine].Nature, run.Host.Arch, run.Host.Cgroup)
		}
		facts.Items = append(facts.Items, document.Fact{Name: run.Label, Text: fmt.Sprintf("run %s, %s, %s; %s; %s", run.ID, Started(run), finding.State(run), machine, b.trials(i))})
	}
	return []document.Block{facts, text(finding.AbsoluteNote(r.Analysis))}
}

// Started spells the start of a run.
func Started(r *analysis.Run) string { return finding.Started(r, "2006-01-02 15:04 UTC") }

// Host describes the machine of a run on one line.
func Host(r *analysis.Run) string {
	h := &r.Host
	if !h.IsKnown() {
		return result.UnknownHost
	}
	parts := []string{fmt.Sprintf("%s: %s, %s", h.Hostname, h.CPU, wording.Counted(h.CPUs, "CPU")), quantity.Text(float64(h.Memory), result.Bytes), h.OS, "kernel " + h.Kernel, "cgroup " + h.Cgroup}
	if h.Nature() != result.Physical {
		parts = append(parts, h.NatureText())
	}
	if !h.Root {
		parts = append(parts, "not root")
	}
	return strings.Join(parts, ", ")
}

// Targets lists the targets of a run on one line.
func Targets(r *analysis.Run) string {
	var parts []string
	for _, t := range r.Targets {
		name := t.Name
		switch {
		case t.Unavailable != "" && t.OK == 0:
			name += " (not available)"
		case t.Name == r.Baseline:
			name += " (baseline)"
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// trials counts the blocks and trials of a run.
func (b *builder) trials(run int) string {
	minimum, maximum := -1, 0
	for _, bench := range b.report.Benchmarks() {
		if s := bench.Sections[run]; s != nil {
			maximum = max(maximum, s.Blocks)
			if minimum < 0 || s.Blocks < minimum {
				minimum = s.Blocks
			}
		}
	}
	r := &b.report.Runs[run]
	counts := finding.Span(max(minimum, 0), maximum, "block") + ", " + strings.Join(finding.StatusCounts(r), ", ")
	if r.Warmup > 0 {
		counts += fmt.Sprintf(", %d warm-up", r.Warmup)
	}
	return counts
}

// differences lists the facts that differ between the runs, and names the others.
func (b *builder) differences() []document.Block {
	differ, equal := b.report.Differences()
	s := document.Section{ID: "differences", Title: "Differences between the runs"}
	if len(differ) == 0 {
		s.Blocks = append(s.Blocks, text("None are known, of machines or targets."))
	}
	var facts document.Facts
	for _, f := range differ {
		facts.Items = append(facts.Items, document.Fact{Name: f.Name(), Text: b.byRun(f, "not known")})
	}
	if facts.Items != nil {
		s.Blocks = append(s.Blocks, facts)
	}
	blocks := []document.Block{s}
	var texts []string
	for _, f := range equal {
		texts = append(texts, f.Name()+" "+f.Values[0])
	}
	if len(texts) > 0 {
		blocks = append(blocks, document.Section{ID: "same", Title: "The same in all runs", Blocks: []document.Block{text(strings.Join(texts, "; "))}})
	}
	return blocks
}

// byRun spells a fact with the runs of each value.
func (b *builder) byRun(f fact.Row, placeholder string) string {
	var parts []string
	for _, g := range f.Groups() {
		value := g.Value
		if value == "" {
			value = placeholder
		}
		if value != "" {
			parts = append(parts, value+" ("+b.report.Labels(g.Runs)+")")
		}
	}
	return strings.Join(parts, "; ")
}

func (b *builder) findings() document.Block {
	f := &b.report.Findings
	s := document.Section{ID: "findings", Title: "Findings"}
	add := func(l document.List) {
		if len(l.Items) > 0 {
			s.Blocks = append(s.Blocks, l)
		}
	}
	list := func(title string, texts []string) document.List {
		l := document.List{Title: title}
		for _, s := range texts {
			l.Items = append(l.Items, item(s))
		}
		return l
	}
	breaches := document.List{Most: mostBreaches, More: "and %d more, at their benchmarks"}
	for _, breach := range f.Breaches {
		breaches.Items = append(breaches.Items, document.Item{Span: document.Span{Text: breach, Tone: document.Alarm}})
	}
	add(breaches)
	add(list("", f.Open))
	add(list("Opposite differences:", f.Opposite))
	statements := list("", f.Statements)
	statements.Ordered = true
	if len(f.Answers) > 0 {
		statements.Title = "The largest differences from the baseline:"
	}
	add(statements)
	switch {
	case f.Comparisons == "" && f.Withheld != "":
	case f.Comparisons == "" && b.single:
		s.Blocks = append(s.Blocks, text("The run has no comparisons."))
	case f.Comparisons == "":
		s.Blocks = append(s.Blocks, text("No two runs have a comparison in common."))
	case len(f.Statements)+len(f.Opposite) == 0:
		s.Blocks = append(s.Blocks, text("No difference between targets is shown."))
	}
	for _, sentence := range []string{f.Comparisons, f.Withheld} {
		if sentence != "" {
			s.Blocks = append(s.Blocks, text(sentence))
		}
	}
	add(list("Failed calls:", f.Failures))
	add(list("Not measured:", f.NotMeasured))
	return s
}

func unmeasured(r *analysis.Run) []document.Block {
	if len(r.Unmeasured) == 0 {
		return nil
	}
	var l document.List
	for _, u := range r.Unmeasured {
		var entry document.Item
		for i, reason := range u.Reasons {
			if i == 0 {
				entry = item(strings.Join(u.Benchmarks, ", ") + " – " + reason.String())
			} else {
				entry.Lines = append(entry.Lines, reason.String())
			}
		}
		l.Items = append(l.Items, entry)
	}
	return []document.Block{document.Section{ID: "unmeasured", Title: "Not measured", Blocks: []document.Block{l}}}
}

// coverage lists the benchmarks that differ between the runs.
func (b *builder) coverage() document.Block {
	var l document.List
	matches := 0
	for i := range b.report.Coverage {
		c := &b.report.Coverage[i]
		if !c.Differs {
			matches++
			continue
		}
		l.Items = append(l.Items, item(c.Title()+" – "+b.byRun(finding.Extent(c), "")))
	}
	s := document.Section{ID: "coverage", Title: "Benchmarks by run", Blocks: []document.Block{
		text(fmt.Sprintf("%d of %d benchmarks have the same targets and blocks in all runs.", matches, len(b.report.Coverage))),
	}}
	if l.Items != nil {
		s.Blocks = append(s.Blocks, l)
	}
	s.Blocks = append(s.Blocks, b.extents())
	return s
}

func (b *builder) legend() []document.Block {
	if len(b.report.Suites) == 0 {
		return nil
	}
	s := document.Section{ID: "legend", Title: "How to read the tables"}
	cost := "× is the cost against the baseline (*) of the same run: the typical ratio within blocks (Hodges and Lehmann), as time / time or rate of the baseline / rate. So 2 × is twice the time or half the rate, above 1 is worse in every row, and a cost with a word such as “slower” is a shown difference. "
	if b.single {
		s.Blocks = append(s.Blocks, text("A number is the median over blocks ± the larger half of its 95 % bootstrap interval. "+cost+
			"A series, with many values in one trial, has one value a trial: their median, or the last one of an amount that grows."))
	} else {
		s.Blocks = append(s.Blocks, text(cost+"Below it are its 95 % interval, and the absolute median ± the larger half of its interval. "+
			"Runs are not judged against each other. The report of each run has its layers, phases and components."))
	}
	s.Blocks = append(s.Blocks, text(finding.FamiliesNote(b.report.Analysis)+" "+quantity.AloneMark+` marks a difference that holds in its metric alone, and not over all comparisons of the run. A part below a cost ("all values", "lowest quarter") has this cost, because the typical value is not shown to differ. "no diff." means that no difference is shown, which is no proof of equality.`))
	for _, note := range []string{finding.DependenceNote(b.report.Analysis), finding.EmulatedNote(b.report.Analysis), finding.SelfcheckNote(b.report.Analysis)} {
		if note != "" {
			s.Blocks = append(s.Blocks, text(note))
		}
	}
	return []document.Block{s}
}

func warnings(groups []finding.WarningGroup) []document.Block {
	var blocks []document.Block
	for _, g := range groups {
		s := document.Section{Title: "Warning: " + g.Title}
		l := document.List{Most: mostItems, More: "and %d more, in the HTML and JSON reports"}
		for _, warning := range g.Items {
			l.Items = append(l.Items, item(warning))
		}
		s.Blocks = append(s.Blocks, l)
		if g.Advice != "" {
			s.Blocks = append(s.Blocks, document.Text{Text: g.Advice, Tone: document.Advice})
		}
		blocks = append(blocks, s)
	}
	return blocks
}

// summaries are the first warning of each kind, by run.
func (b *builder) summaries() []document.Block {
	var blocks []document.Block
	for i := range b.report.Runs {
		r := &b.report.Runs[i]
		if len(b.report.Warnings[i]) == 0 && len(r.Missing) == 0 {
			continue
		}
		var l document.List
		for _, g := range b.report.Warnings[i] {
			warning := g.Title + ": " + g.Items[0]
			if rest := len(g.Items) - 1; rest > 0 {
				warning += fmt.Sprintf(" – and %d more", rest)
			}
			l.Items = append(l.Items, item(warning))
		}
		if n := r.Counts[result.Failed] + r.Counts[result.Timeout]; n > 0 {
			l.Items = append(l.Items, item(fmt.Sprintf("Trials that failed or timed out: %d", n)))
		}
		blocks = append(blocks, document.Section{Title: "Warnings of " + r.Label, Blocks: []document.Block{
			l,
			document.Text{Text: "all of them: touchstone report " + r.ID, Tone: document.Advice},
			document.Section{Title: "All of them", Folded: true, Detail: true, Blocks: append(warnings(b.report.Warnings[i]), missing("", r)...)},
		}})
	}
	return blocks
}

// missing is a section about the trials without a number.
func missing(id string, r *analysis.Run) []document.Block {
	groups := r.MissingGroups()
	if len(groups) == 0 {
		return nil
	}
	var l document.List
	for _, miss := range groups {
		l.Items = append(l.Items, item(fmt.Sprintf("%s on %s: %s: %s", miss.Title(), strings.Join(miss.Targets, ", "), miss.Counts(), miss.Reason)))
	}
	return []document.Block{document.Section{ID: id, Title: "Trials without a number", Blocks: append([]document.Block{l}, outputs(groups)...)}}
}
