// Package html writes a report as one HTML file without a network, script or font. It can be mailed, archived beside a paper,
// printed, and read in ten years.
//
// The content security policy in the file forbids every load and every script, so that a report of an untrusted run is safe
// to open. Text of runs reaches the page only through html/template, and drawings have only coordinates of this package. We
// rejected sorting and highlighting by script, because a policy without exceptions is worth more.
//
// Points of a lane are in the order of time, from top to bottom by block, so that drift is a slope and two modes are two
// columns. Lanes are horizontal, because names of targets are long and there may be many.
package html

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

//go:embed report.css
var reportStyle string

// style is the style sheet of a report.
var style = web.Style + reportStyle

//go:embed templates
var files embed.FS

// Write writes r to w as one HTML file, the same bytes for the same report.
func Write(w io.Writer, r report.Report) error {
	return write(w, "report.html", newPage(&r))
}

// write fills a template with a page.
func write(w io.Writer, name string, content any) error {
	t, err := template.New("report").Funcs(template.FuncMap{"tied": web.Tie}).ParseFS(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("parse the report's templates: %w", err)
	}
	return web.Write(w, t, name, content)
}

// page is the input of the templates: strings and coordinates, with nothing to compute.
type page struct {
	Policy, Title string
	// Style is the embedded style sheet. It has no text of a run.
	Style    template.CSS
	Cards    []card
	Findings finding.Findings
	Matrix   *matrix
	Suites   []suite
	// Resamples and the fields below it describe the numbers.
	Resamples, Least                   int
	Families, Dependence, Alpha, Power string
	// Emulation is the note about emulated CPUs at the top, Withheld the note about missing verdicts. Both may be empty.
	Emulation, Withheld string
	// Single is the page's content about the only run; nil with several runs. Side is the content about several runs.
	Single *single
	Side   *side
}

// field is a name with its text.
type field struct{ Name, Text string }

// single is the content about the only run.
type single struct {
	*analysis.Run
	Warnings []finding.WarningGroup
	// Facts are the lines below the title.
	Facts, Host []field
	// Gaps are the cells without trials that are ok, grouped.
	Gaps []analysis.MissingGroup
	// Empty, Exec, Requests and OwnCPU are Touchstone's own cost.
	Empty, Exec string
	Requests    []field // by engine
	OwnCPU      string
}

// side is the content about several runs.
type side struct {
	// Absolute explains the absolute values.
	Absolute string
	Runs     []sideRun
	// Heads are the columns of tables of all runs.
	Heads []runHead
	// Differ and Coverage have a value for each run. Same are the facts without a difference.
	Differ, Coverage, Same []fact.Row
	Warned                 []warned
}

// sideRun is a run below the title.
type sideRun struct {
	Key                           key
	Label, Machine, Run, Emulated string
}

// runHead is the heading of a run's column.
type runHead struct {
	Key          key
	Label, Small string
}

// warned is the warnings of one of several runs.
type warned struct {
	Key            key
	Label, Summary string
	Warnings       []finding.WarningGroup
	Gaps           []analysis.MissingGroup
}

func newPage(r *report.Report) *page {
	p := &page{
		Policy: web.Policy(style), Style: template.CSS(style), Title: finding.Heading(r.Analysis),
		Cards: cards(r), Findings: r.Findings,
		Resamples: stats.Resamples, Least: stats.MinSamples, Families: strings.TrimSpace(finding.FamiliesNote(r.Analysis) + " " + finding.SelfcheckNote(r.Analysis)), Dependence: finding.DependenceNote(r.Analysis),
		Alpha: quantity.Percent(stats.Alpha), Power: quantity.Percent(stats.Power), Withheld: finding.EmulatedNote(r.Analysis),
	}
	if e := finding.EmulationOf(r.Analysis); e != nil {
		p.Emulation = e.Note
	}
	if len(r.Runs) == 1 {
		p.single(r)
	} else {
		p.Side = newSide(r)
	}
	p.benchmarks(r)
	return p
}

// single adds the content about the only run.
func (p *page) single(report *report.Report) {
	r := &report.Runs[0]
	trials := append(finding.StatusCounts(r), fmt.Sprintf("%d warm-up", r.Warmup))
	host := "unknown"
	if r.HasHost() {
		host = fmt.Sprintf("%s, %d CPUs, %s", r.Host.CPU, r.Host.CPUs, quantity.Text(float64(r.Host.Memory), result.Bytes))
	}
	p.Single = &single{Run: r, Warnings: report.Warnings[0], OwnCPU: quantity.Percent(r.Self), Gaps: r.MissingGroups(), Facts: []field{
		{Name: "Date", Text: started(r)},
		{Name: "Host", Text: host},
		{Name: "Trials", Text: strings.Join(trials, ", ")},
		{Name: "State", Text: finding.State(r)},
		{Name: "Run", Text: r.ID},
		{Name: "Tool", Text: strings.TrimSpace("Touchstone " + r.Tool.Version + " " + r.Tool.Commit)},
	}}
	for _, f := range fact.Host(&r.Run) {
		if f.Text != "" {
			p.Single.Host = append(p.Single.Host, field{f.Name(), f.Text})
		}
	}
	p.Single.Empty = quantity.Text(r.Overhead.EmptyRegion.Seconds(), result.Seconds)
	p.Single.Exec = quantity.Text(r.Overhead.Exec.Seconds(), result.Seconds)
	for _, engine := range slices.Sorted(maps.Keys(r.Overhead.Requests)) {
		took := quantity.Text(r.Overhead.Requests[engine].Seconds(), result.Seconds)
		p.Single.Requests = append(p.Single.Requests, field{Name: engine, Text: took})
	}
}

func started(r *analysis.Run) string { return finding.Started(r, "2 January 2006, 15:04 UTC") }

func newSide(r *report.Report) *side {
	s := &side{Absolute: finding.AbsoluteNote(r.Analysis)}
	for i := range r.Runs {
		run := &r.Runs[i]
		machine := "unknown"
		if run.HasHost() {
			machine = fmt.Sprintf("%s, %s, %d CPUs, cgroup %s", run.Host.CPU, run.Host.Arch, run.Host.CPUs, run.Host.Cgroup)
		}
		s.Heads = append(s.Heads, runHead{Key: keyOf(i), Label: run.Label})
		s.Runs = append(s.Runs, sideRun{
			Key: keyOf(i), Label: run.Label, Emulated: emulated[run.Host.Nature()],
			Machine: machine,
			Run:     fmt.Sprintf("%s; run %s, %s, %s", r.Machines[run.Machine].Nature, run.ID, started(run), run.State),
		})
		if w := newWarned(run, r.Warnings[i], i); w.Warnings != nil || w.Gaps != nil {
			s.Warned = append(s.Warned, w)
		}
	}
	s.Differ, s.Same = r.Differences()
	for i := range r.Coverage {
		s.Coverage = append(s.Coverage, finding.Extent(&r.Coverage[i]))
	}
	return s
}

// emulated marks machines that are not physical.
var emulated = map[result.Nature]string{
	result.Emulated: "emulated", result.GuestOrEmulated: "perhaps emulated", result.Guest: "virtual",
}

func newWarned(r *analysis.Run, warnings []finding.WarningGroup, i int) warned {
	w := warned{Key: keyOf(i), Label: r.Label, Warnings: warnings, Gaps: r.MissingGroups()}
	var titles []string
	for _, g := range warnings {
		titles = append(titles, fmt.Sprintf("%s (%d)", g.Title, len(g.Items)))
	}
	if len(w.Gaps) > 0 {
		titles = append(titles, fmt.Sprintf("Trials without a number (%d)", len(w.Gaps)))
	}
	w.Summary = strings.Join(titles, ", ")
	return w
}
