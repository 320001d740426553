package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// WriteJoint writes a report of several runs to w: a column for each run.
func WriteJoint(w io.Writer, j report.Joint, opts Options) error {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	p := &jointPrinter{printer: &printer{width: max(opts.Width, leastWidth), color: opts.Color}, joint: &j}
	p.headline()
	p.facts()
	p.findings()
	for _, s := range j.Suites {
		for i := range s.Benchmarks {
			p.benchmark(&s.Benchmarks[i])
		}
	}
	p.coverage()
	p.legend()
	p.warnings()
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type jointPrinter struct {
	*printer
	joint *report.Joint
}

// lead is what stands before the text of a list whose items have names.
func lead(name string, width int) string {
	return fmt.Sprintf("  %-*s  ", width, clean(name))
}

func (p *jointPrinter) headline() {
	j := p.joint
	p.line(p.styled("Touchstone  "+j.Heading()+" side by side", bold))
	width := 0
	for i := range j.Runs {
		width = max(width, utf8.RuneCountInString(j.Runs[i].Label))
	}
	for i := range j.Runs {
		r := &j.Runs[i]
		state := string(r.Run.State)
		if !r.Run.Ended.IsZero() {
			state += " after " + r.Run.Ended.Sub(r.Run.Started).Round(time.Second).String()
		}
		p.wrapped(lead(r.Label, width), fmt.Sprintf("run %s, %s, %s; %s, %s, cgroup %s; %s", r.Run.ID, r.Run.Started.UTC().Format("2006-01-02 15:04 UTC"), state,
			j.Machines[r.Machine].Nature, r.Run.Host.Arch, r.Run.Host.Cgroup, trials(&r.Model)))
	}
	p.wrapped("  ", j.AbsoluteNote())
}

// facts writes what differs between the runs, with its values, and names what does not.
func (p *jointPrinter) facts() {
	var differ []report.Fact
	var same []string
	width := 0
	for _, f := range slices.Concat(p.joint.Facts, p.joint.Versions) {
		if f.Differs {
			differ = append(differ, f)
			width = max(width, utf8.RuneCountInString(f.Name))
		} else if len(f.Groups()) == 1 {
			same = append(same, f.Name+" "+f.Values[0])
		}
	}
	p.title("What differs between the runs")
	if len(differ) == 0 {
		p.line("  Nothing that is known of machines and targets.")
	}
	for _, f := range differ {
		var parts []string
		for _, g := range f.Groups() {
			value := g.Value
			if value == "" {
				value = "not known"
			}
			parts = append(parts, value+" ("+p.joint.Labels(g.Runs)+")")
		}
		p.wrapped(lead(f.Name, min(width, longestFact)), strings.Join(parts, "; "))
	}
	if len(same) > 0 {
		p.title("What does not")
		p.wrapped("  ", strings.Join(same, "; "))
	}
}

// longestFact is how far the values of facts are indented at most.
const longestFact = 22

func (p *jointPrinter) findings() {
	f := &p.joint.Findings
	p.title("Findings")
	for i, b := range f.Breaches {
		if i == mostBreaches && len(f.Breaches) > mostBreaches+1 {
			p.line(fmt.Sprintf("  ! and %d more, in the reports of the runs", len(f.Breaches)-i))
			break
		}
		p.alarm(b)
	}
	if f.Comparisons == "" {
		p.line("  No two runs compare the same.")
		return
	}
	if len(f.Opposite) > 0 {
		p.line("  Not the same everywhere:")
		for _, s := range f.Opposite {
			p.wrapped("  - ", s)
		}
	}
	for i, s := range f.Statements {
		p.wrapped(fmt.Sprintf("%3d. ", i+1), s)
	}
	p.wrapped("  ", f.Comparisons)
}

func (p *jointPrinter) benchmark(b *report.JointBenchmark) {
	p.title(clean(b.Title()))
	about := clean(b.Summary)
	if b.Baseline != "" {
		about += "; compared with " + b.Baseline
	}
	if b.Note != "" && b.Baseline != "" {
		about += ", as " + b.Note
	}
	p.wrapped("  ", about)
	if b.Note != "" && b.Baseline == "" {
		p.alarm(b.Note + ".")
	}
	for _, c := range b.Conditions {
		if c.Differs {
			p.wrapped("  ", "Not measured under the same conditions: "+p.spelled(c))
		}
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		p.line("")
		about := string(m.Better) + " is better"
		if m.Unbased {
			about += "; no ratio, as " + clean(b.Baseline) + " has no value"
		}
		p.wrappedIn(bold, "  ", clean(m.Name)+": "+about)
		p.table(p.ratios(b, m))
		if p.joint.AcrossMachines {
			p.across(m)
		}
	}
}

// spelled spells a condition by run.
func (p *jointPrinter) spelled(f report.Fact) string {
	var parts []string
	for _, g := range f.Groups() {
		if g.Value != "" {
			parts = append(parts, f.Name+" "+g.Value+" on "+p.joint.Labels(g.Runs))
		}
	}
	return strings.Join(parts, "; ")
}

// columns are the runs that a benchmark has.
func (p *jointPrinter) columns(b *report.JointBenchmark) (runs []int, heads []entry) {
	for i, run := range b.Runs {
		if run == nil {
			continue
		}
		head := entry{top: clean(p.joint.Runs[i].Label)}
		if b.Baseline == "" && run.Baseline != "" {
			head.below = "to " + clean(run.Baseline)
		}
		runs, heads = append(runs, i), append(heads, head)
	}
	return runs, heads
}

func (p *jointPrinter) ratios(b *report.JointBenchmark, m *report.JointMetric) table {
	runs, heads := p.columns(b)
	t := table{columns: heads}
	for i := range m.Rows {
		r := &m.Rows[i]
		t.rows = append(t.rows, heading(r.Target, r.Baseline))
		var row []entry
		for _, run := range runs {
			row = append(row, jointField(m, &r.Cells[run]))
		}
		t.cells = append(t.cells, row)
	}
	return t
}

// jointField is the ratio with the verdict, its interval, and the absolute value.
func jointField(m *report.JointMetric, c *report.JointCell) entry {
	if !c.Has() {
		return entry{top: report.None, below: c.Lack, style: dim}
	}
	median := report.Median(c.Summary, m.Unit)
	if (&report.Metric{Metric: m.Metric}).Breached(c.Cell) {
		median = alarmMark + median
	}
	k := c.Comparison
	if k == nil {
		e := entry{top: median}
		if c.Baseline {
			e.below, e.style = "baseline", dim
		}
		return e
	}
	word := report.VerdictWord(k.Verdict, m.Unit)
	e := entry{below: report.RatioInterval(k.CI), third: median}
	switch k.Verdict {
	case stats.Faster:
		e.lead = green
	case stats.Slower:
		e.lead = red
	case stats.NoDifference:
		word = "no diff."
	case stats.TooNoisy, stats.TooFew, stats.NotComparable:
	}
	e.top = word
	if ratio := report.Ratio(k.Ratio); ratio != report.None {
		e.top = ratio + " " + word
	}
	return e
}

// across writes the ratios of absolute medians to those of the first run.
func (p *jointPrinter) across(m *report.JointMetric) {
	j := p.joint
	var t table
	for _, r := range j.Runs[1:] {
		t.columns = append(t.columns, entry{top: clean(r.Label)})
	}
	for _, r := range m.Rows {
		var row []entry
		has := false
		for _, c := range r.Cells[1:] {
			e := entry{top: report.None}
			if c.Across != nil {
				has = true
				e = entry{top: report.Ratio(c.Across.Ratio), below: report.RatioInterval(c.Across.CI)}
			}
			row = append(row, e)
		}
		if has {
			t.rows = append(t.rows, heading(r.Target, false))
			t.cells = append(t.cells, row)
		}
	}
	if len(t.rows) > 0 {
		p.line("")
		p.wrapped("  ", "Across runs: absolute "+m.Name+" as a ratio to that of "+j.Runs[0].Label)
		p.table(t)
	}
}

// coverage lists the benchmarks of which the runs do not have the same.
func (p *jointPrinter) coverage() {
	var lines []string
	all := 0
	for i := range p.joint.Coverage {
		c := &p.joint.Coverage[i]
		if !c.Differs {
			all++
			continue
		}
		f := report.Fact{}
		for n := range c.Cells {
			f.Values = append(f.Values, c.Cells[n].String())
		}
		var parts []string
		for _, g := range f.Groups() {
			parts = append(parts, g.Value+" ("+p.joint.Labels(g.Runs)+")")
		}
		lines = append(lines, c.Title()+" – "+strings.Join(parts, "; "))
	}
	p.title("What the runs have")
	p.wrapped("  ", fmt.Sprintf("Of %d benchmarks %d are the same in all runs, with the same targets and blocks.", len(p.joint.Coverage), all))
	for _, l := range lines {
		p.wrapped("  - ", l)
	}
}

func (p *jointPrinter) legend() {
	if len(p.joint.Suites) == 0 {
		return
	}
	p.title("How to read the tables")
	p.wrapped("  ", "× is the ratio to the baseline (*) of the same run, paired by block, with the verdict; below it are its 95 % bootstrap interval, and the "+
		"absolute median ± the larger half of its interval. A verdict stands where Holm's correction over the targets of a metric in one run leaves "+
		`less than 5 % for a false one; "no diff." is: no difference shown, which is no proof of equality. Nothing is judged between runs. Layers, phases and components are in the report of each run.`)
}

// warnings names those of each run, and of each kind the first.
func (p *jointPrinter) warnings() {
	for i := range p.joint.Runs {
		r := &p.joint.Runs[i]
		if len(r.Warnings) == 0 && len(r.Missing) == 0 {
			continue
		}
		p.title("Warnings of " + clean(r.Label))
		for _, g := range r.Warnings {
			text := g.Title + ": " + g.Items[0]
			if more := len(g.Items) - 1; more > 0 {
				text += fmt.Sprintf(" – and %d more", more)
			}
			p.wrapped("  - ", text)
		}
		if n := missingTrials(&r.Model); n > 0 {
			p.wrapped("  - ", fmt.Sprintf("Trials that failed or timed out: %d", n))
		}
		p.wrapped("  → ", "all of it: touchstone report "+r.Run.ID)
	}
}

// missingTrials counts the trials that failed or timed out.
func missingTrials(m *report.Model) int {
	n := 0
	for _, miss := range m.Missing {
		if miss.Status != result.Skipped {
			n += miss.Count
		}
	}
	return n
}
