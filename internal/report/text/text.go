// Package text writes a report for a terminal: the runs and their findings, then a table for each benchmark, then the reasons
// to trust the numbers less.
//
// It is the first output that a user sees, so a number is the median with the larger half of its interval, the factor to the
// baseline, and the verdict. The HTML and JSON reports have the rest. Colour repeats words and is off by default.
//
// Text of programs loses its control characters, so that no runtime can write to the terminal through a report.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Options describe the terminal.
type Options struct {
	// Width is the number of columns; 0 stands for 100, less than 60 for 60.
	Width int
	// Color allows ANSI escapes for bold, dim, green and red.
	Color bool
}

const (
	defaultWidth = 100
	leastWidth   = 60
	// mostItems is the largest number of warnings of one kind in the text.
	mostItems = 4
	// mostBreaches is the largest number of breaches at the top.
	mostBreaches = 8
	// longestFact is the largest indent of the values of facts.
	longestFact = 22
)

// Write writes r to w.
func Write(w io.Writer, r report.Report, opts Options) error {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	p := &printer{width: max(opts.Width, leastWidth), color: opts.Color, report: &r, single: len(r.Runs) == 1}
	if p.single {
		p.headline(&r.Runs[0])
		p.scorecards()
	} else {
		p.headlines()
		p.scorecards()
		p.differences()
	}
	p.findings()
	for _, b := range r.Benchmarks() {
		p.benchmark(b)
	}
	if p.single {
		p.unmeasured(&r.Runs[0])
		p.legend()
		p.warnings(r.Warnings[0])
		p.missing(&r.Runs[0])
	} else {
		p.coverage()
		p.legend()
		p.summaries()
	}
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// style is the ANSI code of a piece of text.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	red   style = "31"
	green style = "32"
)

type printer struct {
	out    strings.Builder
	width  int
	color  bool
	report *report.Report
	// single is set for a report of one run.
	single bool
}

func (p *printer) styled(s string, st style) string {
	if !p.color || st == plain || s == "" {
		return s
	}
	return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string) {
	p.out.WriteString(strings.TrimRight(s, " "))
	p.out.WriteByte('\n')
}

// title begins a section.
func (p *printer) title(s string) {
	p.line("")
	p.line(p.styled(s, bold))
}

// wrapped breaks text into lines. The first line follows lead, the others are indented like it.
func (p *printer) wrapped(lead, text string) { p.wrappedIn(plain, lead, text) }

// wrappedIn is wrapped in a style.
func (p *printer) wrappedIn(st style, lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	current := lead
	empty := true
	for _, word := range strings.Fields(clean(text)) {
		if !empty && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > p.width {
			p.line(p.styled(current, st))
			current, empty = indent, true
		}
		if !empty {
			current += " "
		}
		current += word
		empty = false
	}
	p.line(p.styled(current, st))
}

// clean replaces control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		default:
			return r
		}
	}, s)
}

// headline describes the only run.
func (p *printer) headline(r *analysis.Run) {
	name := r.Name
	if name == "" {
		name = "without a name"
	}
	p.line(p.styled("Touchstone "+clean(r.Tool.Version)+"  "+clean(name), bold))
	p.emulation()
	p.wrapped("Run      ", fmt.Sprintf("%s, %s, %s", r.ID, started(r), finding.State(r)))
	p.wrapped("Host     ", host(r))
	p.wrapped("Targets  ", targets(r))
	for _, i := range r.Images {
		p.wrapped("Image    ", fact.ImageText(i))
	}
	p.wrapped("Trials   ", p.trials(0))
}

// headlines describe several runs.
func (p *printer) headlines() {
	r := p.report
	p.line(p.styled("Touchstone  "+finding.Heading(r.Analysis)+" side by side", bold))
	p.emulation()
	width := 0
	for i := range r.Runs {
		width = max(width, utf8.RuneCountInString(r.Runs[i].Label))
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		p.wrapped(lead(run.Label, width), fmt.Sprintf("run %s, %s, %s; %s, %s, cgroup %s; %s", run.ID, started(run), finding.State(run),
			r.Machines[run.Machine].Nature, run.Host.Arch, run.Host.Cgroup, p.trials(i)))
	}
	p.wrapped("  ", finding.AbsoluteNote(r.Analysis))
}

// emulation writes the note about emulated CPUs.
func (p *printer) emulation() {
	if e := finding.EmulationOf(p.report.Analysis); e != nil {
		p.wrappedIn(red, alarmMark, e.Note)
	}
}

func started(r *analysis.Run) string { return finding.Started(r, "2006-01-02 15:04 UTC") }

// lead is the indented name of an item of a list.
func lead(name string, width int) string { return fmt.Sprintf("  %-*s  ", width, clean(name)) }

func host(r *analysis.Run) string {
	h := &r.Host
	if !r.HasHost() {
		return "unknown"
	}
	parts := []string{fmt.Sprintf("%s: %s, %d CPUs", h.Hostname, h.CPU, h.CPUs), quantity.Text(float64(h.Memory), result.Bytes), h.OS, "kernel " + h.Kernel, "cgroup " + h.Cgroup}
	if h.Nature() != result.Physical {
		parts = append(parts, h.NatureText())
	}
	if !h.Root {
		parts = append(parts, "not root")
	}
	return strings.Join(parts, ", ")
}

func targets(r *analysis.Run) string {
	var parts []string
	for _, t := range r.Targets {
		s := t.Name
		switch {
		case t.Unavailable != "" && t.OK == 0:
			s += " (not available)"
		case t.Name == r.Baseline:
			s += " (baseline)"
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// trials counts the blocks and trials of a run.
func (p *printer) trials(run int) string {
	lo, hi := -1, 0
	for _, b := range p.report.Benchmarks() {
		if s := b.Sections[run]; s != nil {
			hi = max(hi, s.Blocks)
			if lo < 0 || s.Blocks < lo {
				lo = s.Blocks
			}
		}
	}
	out := fmt.Sprintf("%d blocks", hi)
	if lo = max(lo, 0); lo != hi {
		out = fmt.Sprintf("%d to %d blocks", lo, hi)
	}
	r := &p.report.Runs[run]
	out += ", " + strings.Join(finding.StatusCounts(r), ", ")
	if r.Warmup > 0 {
		out += fmt.Sprintf(", %d warm-up", r.Warmup)
	}
	return out
}

// differences lists the facts that differ between the runs, and names the others.
func (p *printer) differences() {
	differ, equal := p.report.Differences()
	width := 0
	for _, f := range differ {
		width = max(width, utf8.RuneCountInString(f.Name()))
	}
	var same []string
	for _, f := range equal {
		same = append(same, f.Name()+" "+f.Values[0])
	}
	p.title("Differences between the runs")
	if len(differ) == 0 {
		p.line("  None are known, of machines or targets.")
	}
	for _, f := range differ {
		p.wrapped(lead(f.Name(), min(width, longestFact)), p.byRun(f, "not known"))
	}
	if len(same) > 0 {
		p.title("The same in all runs")
		p.wrapped("  ", strings.Join(same, "; "))
	}
}

// byRun spells a fact with the runs of each value.
func (p *printer) byRun(f fact.Row, unknown string) string {
	var parts []string
	for _, g := range f.Groups() {
		value := g.Value
		if value == "" {
			value = unknown
		}
		if value != "" {
			parts = append(parts, value+" ("+p.report.Labels(g.Runs)+")")
		}
	}
	return strings.Join(parts, "; ")
}

// scorecards writes the scorecards of all runs that have one.
func (p *printer) scorecards() {
	written := false
	for i := range p.report.Runs {
		r := &p.report.Runs[i]
		if len(r.Scorecard.Targets) == 0 {
			continue
		}
		if p.single {
			p.title("Scorecard")
		} else {
			p.title("Scorecard of " + clean(r.Label))
		}
		p.scorecard(&r.Scorecard)
		written = true
	}
	if written {
		p.line("")
		p.wrapped("  ", finding.ScorecardNote)
		if note := finding.EmulatedNote(p.report.Analysis); note != "" {
			p.wrapped("  ", note)
		}
	}
}

// scorecard writes a table of the dimensions, and the source of each score.
func (p *printer) scorecard(card *analysis.Scorecard) {
	t := table{{{}}}
	for _, name := range card.Targets {
		t[0] = append(t[0], heading(name, false))
	}
	styles := map[analysis.ScoreVerdict]style{analysis.Met: green, analysis.Missed: red}
	var sources []string
	for _, r := range card.Rows {
		if r.Unmeasured() {
			continue
		}
		row := []entry{{top: string(r.Dimension), below: string(r.Goal)}}
		for i := range r.Scores {
			s := &r.Scores[i]
			e := entry{top: finding.Score(s), below: string(s.Verdict), style: dim}
			if of, ok := styles[s.Verdict]; ok {
				e.style = of
			}
			interval := finding.ScoreInterval(s)
			switch {
			case s.Value == nil:
				e.below = ""
			case interval == quantity.None:
			case e.below == "":
				e.below = interval
			default:
				e.third = interval
			}
			row = append(row, e)
		}
		t = append(t, row)
		sources = append(sources, string(r.Dimension)+": "+finding.ScoreSources(card, &r))
	}
	p.table(t)
	p.line("")
	p.line("  Sources")
	for _, s := range sources {
		p.wrapped("  - ", s)
	}
}

func (p *printer) findings() {
	f := &p.report.Findings
	p.title("Findings")
	for i, b := range f.Breaches {
		if i == mostBreaches && len(f.Breaches) > mostBreaches+1 {
			p.line(fmt.Sprintf("  ! and %d more, at their benchmarks", len(f.Breaches)-i))
			break
		}
		p.alarm(b)
	}
	for _, s := range f.Summary {
		p.wrapped("  • ", s)
	}
	if len(f.Summary) > 0 && len(f.Statements) > 0 {
		p.line("")
		p.line("  The largest differences from the baseline:")
	}
	if len(f.Opposite) > 0 {
		p.line("  Opposite differences:")
		for _, s := range f.Opposite {
			p.wrapped("  - ", s)
		}
	}
	for i, s := range f.Statements {
		p.wrapped(fmt.Sprintf("%3d. ", i+1), s)
	}
	switch {
	case f.Comparisons == "" && f.Withheld != "":
	case f.Comparisons == "" && p.single:
		p.line("  The run has no comparisons.")
	case f.Comparisons == "":
		p.line("  No two runs have a comparison in common.")
	case len(f.Statements)+len(f.Opposite) == 0:
		p.line("  No difference between targets is shown.")
	}
	if f.Comparisons != "" {
		p.wrapped("  ", f.Comparisons)
	}
	if f.Withheld != "" {
		p.wrapped("  ", f.Withheld)
	}
	if len(f.Failures) > 0 {
		p.line("  Failed calls:")
		for _, s := range f.Failures {
			p.wrapped("  - ", s)
		}
	}
	if len(f.NotMeasured) > 0 {
		p.line("  Not measured:")
		for _, s := range f.NotMeasured {
			p.wrapped("  - ", s)
		}
	}
}

// alarm writes a breach.
func (p *printer) alarm(text string) { p.wrappedIn(red, "  "+alarmMark, text) }

// alarmMark precedes a breach and the number of a broken limit.
const alarmMark = "! "

func (p *printer) unmeasured(r *analysis.Run) {
	if len(r.Unmeasured) == 0 {
		return
	}
	p.title("Not measured")
	for _, u := range r.Unmeasured {
		for i, reason := range u.Reasons {
			text := reason.String()
			if i == 0 {
				text = strings.Join(u.Benchmarks, ", ") + " – " + text
			}
			p.wrapped([]string{"  - ", "    "}[min(i, 1)], text)
		}
	}
}

// coverage lists the benchmarks that differ between the runs.
func (p *printer) coverage() {
	var lines []string
	same := 0
	for i := range p.report.Coverage {
		c := &p.report.Coverage[i]
		if !c.Differs {
			same++
			continue
		}
		lines = append(lines, c.Title()+" – "+p.byRun(finding.Extent(c), ""))
	}
	p.title("Benchmarks by run")
	p.wrapped("  ", fmt.Sprintf("%d of %d benchmarks have the same targets and blocks in all runs.", same, len(p.report.Coverage)))
	for _, l := range lines {
		p.wrapped("  - ", l)
	}
}

func (p *printer) legend() {
	if len(p.report.Suites) == 0 {
		return
	}
	p.title("How to read the tables")
	factor := "× is the ratio to the baseline (*) of the same run: the typical ratio within blocks (Hodges and Lehmann), as a factor in the direction of the difference. "
	if p.single {
		p.wrapped("  ", "A number is the median over blocks ± the larger half of its 95 % bootstrap interval. "+factor+
			"A series, with many values in one trial, has one value a trial: their median, or the last one of an amount that grows.")
	} else {
		p.wrapped("  ", factor+"Below it are its 95 % interval, and the absolute median ± the larger half of its interval. "+
			"Runs are not judged against each other. The report of each run has its layers, phases and components.")
	}
	p.wrapped("  ", finding.FamiliesNote(p.report.Analysis)+" "+quantity.AloneMark+` marks a difference that holds in its metric alone, and not over all comparisons of the run. A part below a factor ("all values", "lowest quarter") has this factor, because the typical value is not shown to differ. "no diff." means that no difference is shown, which is no proof of equality.`)
	for _, note := range []string{finding.DependenceNote(p.report.Analysis), finding.EmulatedNote(p.report.Analysis), finding.SelfcheckNote(p.report.Analysis)} {
		if note != "" {
			p.wrapped("  ", note)
		}
	}
}

func (p *printer) warnings(groups []finding.WarningGroup) {
	for _, g := range groups {
		p.title("Warning: " + g.Title)
		for i, item := range g.Items {
			if i == mostItems && len(g.Items) > mostItems+1 {
				p.line(fmt.Sprintf("  - and %d more, in the HTML and JSON reports", len(g.Items)-i))
				break
			}
			p.wrapped("  - ", item)
		}
		if g.Advice != "" {
			p.wrapped("  → ", g.Advice)
		}
	}
}

// summaries write the first warning of each kind, by run.
func (p *printer) summaries() {
	for i := range p.report.Runs {
		r, warnings := &p.report.Runs[i], p.report.Warnings[i]
		if len(warnings) == 0 && len(r.Missing) == 0 {
			continue
		}
		p.title("Warnings of " + clean(r.Label))
		for _, g := range warnings {
			text := g.Title + ": " + g.Items[0]
			if more := len(g.Items) - 1; more > 0 {
				text += fmt.Sprintf(" – and %d more", more)
			}
			p.wrapped("  - ", text)
		}
		if n := r.Counts[result.Failed] + r.Counts[result.Timeout]; n > 0 {
			p.wrapped("  - ", fmt.Sprintf("Trials that failed or timed out: %d", n))
		}
		p.wrapped("  → ", "all of them: touchstone report "+r.ID)
	}
}

func (p *printer) missing(r *analysis.Run) {
	groups := r.MissingGroups()
	if len(groups) == 0 {
		return
	}
	p.title("Trials without a number")
	for _, miss := range groups {
		p.wrapped("  - ", fmt.Sprintf("%s on %s: %s: %s", miss.Title(), strings.Join(miss.Targets, ", "), miss.Counts(), miss.Reason))
	}
}
