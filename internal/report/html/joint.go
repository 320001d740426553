package html

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// WriteJoint writes a report of several runs to w as one HTML file, the same bytes for the same model.
func WriteJoint(w io.Writer, j report.Joint) error { return write(w, "joint.html", newJointPage(&j)) }

// jointPage is what the templates of a joint report show.
type jointPage struct {
	Policy, Title string
	Style         template.CSS
	// Absolute says what becomes of absolute values.
	Absolute string
	Runs     []jointRun
	// Heads are the columns of tables of all runs, Others those but for Reference, the first.
	Heads, Others []runHead
	Reference     string
	Findings      report.JointFindings
	// Differ and Coverage have a value for each run; Same are the facts in which runs do not differ.
	Differ, Coverage []sideFact
	Same             []fact
	Matrix           *matrix
	Suites           []jointSuite
	Warned           []warned

	Resamples, Families, MaybeFalse int
	Alpha                           string
}

// Width counts the columns of a table of all runs.
func (p *jointPage) Width() int { return 1 + len(p.Heads) }

// jointRun is a run under the title.
type jointRun struct {
	Key                           key
	Label, Machine, Run, Emulated string
}

// runHead heads the column of a run.
type runHead struct {
	Key          key
	Label, Small string
}

// sideFact is a fact with a value for each run.
type sideFact struct {
	Name   string
	Values []sideValue
}

// sideValue is Odd if it is not that of the first run.
type sideValue struct {
	Text string
	Odd  bool
}

func newSideFact(name string, values []string) sideFact {
	f := sideFact{Name: name}
	for _, v := range values {
		value := sideValue{Text: v, Odd: v != values[0]}
		if v == "" {
			value.Text = report.None
		}
		f.Values = append(f.Values, value)
	}
	return f
}

type jointSuite struct {
	Name       string
	Benchmarks []*jointBenchmark
}

type jointBenchmark struct {
	*report.JointBenchmark
	ID, Telling string
	Conditions  []fact
	Figures     []sides
	Heads       []runHead
	Groups      []jointGroup
	// Across are the ratios of absolute medians to those of the first run.
	Across []matrixGroup
}

// Short is the name without the suite, for the table of contents.
func (b *jointBenchmark) Short() string {
	_, short, _ := strings.Cut(b.Name, ".")
	return short + b.Telling
}

// Width counts the columns of its table.
func (b *jointBenchmark) Width() int { return 1 + len(b.Heads) }

// jointGroup is the rows of a metric.
type jointGroup struct {
	Title, About, Help string
	Rows               []matrixRow
}

// warned is what makes one run less trustworthy.
type warned struct {
	Key            key
	Label, Summary string
	Warnings       []report.WarningGroup
	Missing        []missing
}

func newJointPage(j *report.Joint) *jointPage {
	p := &jointPage{
		Policy: policy(), Style: template.CSS(style), Title: j.Heading(), Absolute: j.AbsoluteNote(),
		Resamples: stats.Resamples, Families: j.Families, MaybeFalse: int(stats.Alpha*float64(j.Families) + 0.5), Alpha: report.Percent(stats.Alpha),
	}
	for i := range j.Runs {
		r := &j.Runs[i]
		p.Runs = append(p.Runs, newJointRun(j, i))
		p.Heads = append(p.Heads, runHead{Key: keyOf(i), Label: r.Label})
		if w := newWarned(j, i); w.Warnings != nil || w.Missing != nil {
			p.Warned = append(p.Warned, w)
		}
	}
	if len(p.Heads) > 0 {
		p.Reference, p.Others = p.Heads[0].Label, p.Heads[1:]
	}
	p.Findings.Breaches, p.Findings.Opposite, p.Findings.Statements = tiedAll(j.Findings.Breaches), tiedAll(j.Findings.Opposite), tiedAll(j.Findings.Statements)
	p.Findings.Comparisons = tied(j.Findings.Comparisons)
	for _, f := range slices.Concat(j.Facts, j.Versions) {
		if f.Differs {
			p.Differ = append(p.Differ, newSideFact(f.Name, f.Values))
		} else if len(f.Groups()) == 1 {
			p.Same = append(p.Same, fact{f.Name, f.Values[0]})
		}
	}
	for i := range j.Coverage {
		var values []string
		for n := range j.Coverage[i].Cells {
			values = append(values, j.Coverage[i].Cells[n].String())
		}
		p.Coverage = append(p.Coverage, newSideFact(j.Coverage[i].Title(), values))
	}
	p.benchmarks(j)
	return p
}

func tiedAll(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, tied(s))
	}
	return out
}

func newJointRun(j *report.Joint, i int) jointRun {
	r := &j.Runs[i]
	out := jointRun{
		Key: keyOf(i), Label: r.Label, Machine: fmt.Sprintf("%s, %s, %d CPUs, cgroup %s", r.Run.Host.CPU, r.Run.Host.Arch, r.Run.Host.CPUs, r.Run.Host.Cgroup),
		Run: fmt.Sprintf("%s; run %s, %s, %s", j.Machines[r.Machine].Nature, r.Run.ID, r.Run.Started.UTC().Format("2 January 2006, 15:04 UTC"), r.Run.State),
	}
	switch r.Run.Host.Nature() {
	case result.Emulated:
		out.Emulated = "emulated"
	case result.GuestOrEmulated:
		out.Emulated = "perhaps emulated"
	case result.Guest:
		out.Emulated = "virtual"
	case result.Physical:
	}
	return out
}

func newWarned(j *report.Joint, i int) warned {
	r := &j.Runs[i]
	w := warned{Key: keyOf(i), Label: r.Label, Warnings: r.Warnings, Missing: missingRows(&r.Model)}
	var titles []string
	for _, g := range r.Warnings {
		titles = append(titles, fmt.Sprintf("%s (%d)", g.Title, len(g.Items)))
	}
	if len(w.Missing) > 0 {
		titles = append(titles, fmt.Sprintf("Trials without a number (%d)", len(w.Missing)))
	}
	w.Summary = strings.Join(titles, ", ")
	return w
}

// benchmarks makes the sections of the benchmarks, and the overview.
func (p *jointPage) benchmarks(j *report.Joint) {
	count, all := 0, 0
	names := map[string]int{}
	for _, s := range j.Suites {
		all += len(s.Benchmarks)
		for i := range s.Benchmarks {
			names[s.Benchmarks[i].Name]++
		}
	}
	overview := matrix{Brief: all > mostWhole}
	for _, s := range j.Suites {
		suite := jointSuite{Name: s.Name}
		for i := range s.Benchmarks {
			count++
			b := newJointBenchmark(j, &s.Benchmarks[i], fmt.Sprintf("b%d", count))
			if names[b.Name] > 1 {
				b.Telling = " " + b.Params
			}
			suite.Benchmarks = append(suite.Benchmarks, b)
			if rows := overviewRows(b.JointBenchmark, overview.Brief); len(rows) > 0 {
				overview.Groups = append(overview.Groups, matrixGroup{ID: b.ID, Title: b.Title(), Rows: rows})
			}
		}
		p.Suites = append(p.Suites, suite)
	}
	if len(overview.Groups) > 0 {
		p.Matrix = &overview
	}
}

// overviewRows are the ratios of the metrics of a benchmark, in brief of the first. What one run alone has, or what
// has no baseline that all runs share, is no matter of an overview.
func overviewRows(b *report.JointBenchmark, brief bool) []matrixRow {
	var rows []matrixRow
	if alone := len(b.Runs) - 1; len(slices.DeleteFunc(slices.Clone(b.Runs), func(of *report.Benchmark) bool { return of != nil })) >= alone {
		return nil
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		if m.Unbased || b.Baseline == "" {
			continue
		}
		for n := range m.Rows {
			r := &m.Rows[n]
			if r.Baseline {
				continue
			}
			head := newHeading(r.Target)
			head.Metric = m.Name
			row := matrixRow{Head: head}
			for c := range r.Cells {
				row.Cells = append(row.Cells, newJointCell(m, &r.Cells[c]))
			}
			rows = append(rows, row)
		}
		if brief && len(rows) > 0 {
			break
		}
	}
	return rows
}

func newJointBenchmark(j *report.Joint, b *report.JointBenchmark, id string) *jointBenchmark {
	out := &jointBenchmark{JointBenchmark: b, ID: id}
	for i, run := range b.Runs {
		if run == nil {
			continue
		}
		head := runHead{Key: keyOf(i), Label: j.Runs[i].Label}
		if b.Baseline == "" && run.Baseline != "" {
			head.Small = "to " + run.Baseline
		}
		out.Heads = append(out.Heads, head)
	}
	for _, c := range b.Conditions {
		var parts []string
		for _, g := range c.Groups() {
			switch {
			case g.Value == "":
			case c.Differs:
				parts = append(parts, g.Value+" on "+j.Labels(g.Runs))
			default:
				parts = append(parts, g.Value)
			}
		}
		out.Conditions = append(out.Conditions, fact{c.Name, strings.Join(parts, "; ")})
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		out.Figures = append(out.Figures, newSides(j, b, m)...)
		out.Groups = append(out.Groups, newJointGroup(b, m))
		if rows := acrossRows(m); len(rows) > 0 {
			out.Across = append(out.Across, matrixGroup{Title: m.Name, Rows: rows})
		}
	}
	return out
}

func newJointGroup(b *report.JointBenchmark, m *report.JointMetric) jointGroup {
	g := jointGroup{Title: m.Name, About: string(m.Better) + " is better", Help: m.Help}
	if m.Unbased {
		g.About += "; no ratio, as " + b.Baseline + " has no value"
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		row := matrixRow{Head: newHeading(r.Target)}
		for run := range r.Cells {
			if b.Runs[run] == nil {
				continue
			}
			cell := newJointCell(m, &r.Cells[run])
			switch c := &r.Cells[run]; {
			case !c.Has():
			case c.Comparison != nil:
				cell.Absolute = fmt.Sprintf("%s, n = %d", report.Median(c.Summary, m.Unit), c.Summary.N)
			default: // the median stands above
				cell.Absolute = fmt.Sprintf("%s, n = %d", report.Interval(c.Summary.CI, c.Summary.Median, m.Unit), c.Summary.N)
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func newJointCell(m *report.JointMetric, c *report.JointCell) matrixCell {
	if c.Cell == nil {
		return matrixCell{Class: "none", Main: report.None, Word: c.Lack, Title: c.Why}
	}
	return newMatrixCell(c.Cell, &report.Metric{Metric: m.Metric})
}

// acrossRows are the ratios of absolute medians to those of the first run, if they were asked for.
func acrossRows(m *report.JointMetric) []matrixRow {
	var rows []matrixRow
	for _, r := range m.Rows {
		row := matrixRow{Head: newHeading(r.Target)}
		has := false
		for _, c := range r.Cells[1:] {
			cell := matrixCell{Class: "none", Main: report.None}
			if c.Across != nil {
				has = true
				cell = matrixCell{Class: "neutral", Main: report.Ratio(c.Across.Ratio), Small: report.RatioInterval(c.Across.CI)}
			}
			row.Cells = append(row.Cells, cell)
		}
		if has {
			rows = append(rows, row)
		}
	}
	return rows
}
