package html

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// page is what the templates show: strings and coordinates, nothing to compute.
type page struct {
	Policy string
	// Style is the embedded style sheet; nothing of a run is in it.
	Style template.CSS
	Title string
	Facts []fact
	Model *report.Model
	// Findings are those of the model, set so that no line ends inside a quantity.
	Findings report.Findings
	Matrix   *matrix
	Suites   []suite
	Host     []fact
	Method   method
	// Missing are the cells that lack trials, alike ones together, with the words for their ends.
	Missing []missing
}

type fact struct{ Name, Value string }

type suite struct {
	Name       string
	Benchmarks []*benchmark
}

type benchmark struct {
	*report.Benchmark
	ID       string
	Outcomes []outcome
	Strips   []strip
	// Layers stand before the plots, Bars behind them.
	Layers, Bars []*bars
	Curves       []curve
	Table        *statistics
}

// Short is the name without the suite, for the table of contents.
func (b *benchmark) Short() string {
	_, short, _ := strings.Cut(b.Title(), ".")
	return short
}

type outcome struct{ Targets, Counts, Why string }

// mostNamed is how many targets are named of which nothing is to be said but the same count.
const mostNamed = 4

// outcomes tells how trials ended: of each target, or of many alike together.
func outcomes(b *report.Benchmark) []outcome {
	var all []outcome
	var alike [][]string
	for i := range b.Targets {
		o := &b.Targets[i]
		counts := o.Counts()
		if o.Disturbed > 0 {
			counts += fmt.Sprintf(" (%d disturbed)", o.Disturbed)
		}
		at := -1
		if len(b.Targets) > mostColumns {
			at = slices.IndexFunc(all, func(other outcome) bool { return other.Counts == counts && other.Why == o.Why() })
		}
		if at < 0 {
			at = len(all)
			all, alike = append(all, outcome{Counts: counts, Why: o.Why()}), append(alike, nil)
		}
		alike[at] = append(alike[at], o.Target)
	}
	for i, names := range alike {
		all[i].Targets = strings.Join(names, ", ")
		if all[i].Why == "" && len(names) > mostNamed {
			all[i].Targets = fmt.Sprintf("%d targets", len(names))
		}
		if len(names) > 1 {
			all[i].Counts += " each"
		}
	}
	return all
}

type missing struct {
	Title                string
	Targets              []string
	What, Reason, Output string
}

type method struct {
	Seed, RunSeed     uint64
	Resamples         int
	Least, Families   int
	Alpha, Power      string
	MaybeFalse        int
	Empty, Exec, Self string
	Plan              string
}

func newPage(m *report.Model) *page {
	p := &page{Policy: policy(), Style: template.CSS(style), Title: m.Run.Name, Model: m, Facts: facts(m), Host: hostFacts(m)}
	if p.Title == "" {
		p.Title = "Run " + m.Run.ID
	}
	count := 0
	for _, s := range m.Suites {
		out := suite{Name: s.Name}
		for i := range s.Benchmarks {
			count++
			out.Benchmarks = append(out.Benchmarks, newBenchmark(&s.Benchmarks[i], fmt.Sprintf("b%d", count)))
		}
		p.Suites = append(p.Suites, out)
	}
	p.Matrix = newMatrix(m)
	p.Findings.Comparisons = tied(m.Findings.Comparisons)
	for _, s := range m.Findings.Statements {
		p.Findings.Statements = append(p.Findings.Statements, tied(s))
	}
	for _, s := range m.Findings.NotMeasured {
		p.Findings.NotMeasured = append(p.Findings.NotMeasured, tied(s))
	}
	for _, miss := range m.MissingGroups() {
		p.Missing = append(p.Missing, missing{
			Title: miss.Title(), Targets: miss.Targets,
			What:   fmt.Sprintf("%d of %d %s", miss.Count, miss.Total, report.StatusWord(miss.Status)),
			Reason: miss.Reason, Output: strings.TrimSpace(miss.Output),
		})
	}
	p.Method = method{
		Seed: m.Seed, RunSeed: m.Run.Seed, Resamples: stats.Resamples, Least: stats.MinSamples, Families: m.Families,
		Alpha: report.Percent(stats.Alpha), Power: report.Percent(stats.Power), MaybeFalse: int(stats.Alpha*float64(m.Families) + 0.5),
		Empty: report.Quantity(m.Run.Overhead.EmptyRegion.Seconds(), result.Seconds), Exec: report.Quantity(m.Run.Overhead.Exec.Seconds(), result.Seconds),
		Self: report.Percent(m.Run.Self), Plan: m.Run.Plan,
	}
	return p
}

// tied keeps a number together with what follows it: "95 %", "2.4 ×".
func tied(s string) string {
	return strings.NewReplacer(" %", "\u00a0%", " × ", "\u00a0×\u00a0", " ms,", "\u00a0ms,", " µs,", "\u00a0µs,", " ns,", "\u00a0ns,").Replace(s)
}

// facts are the lines under the title.
func facts(m *report.Model) []fact {
	r := &m.Run
	state := string(r.State)
	if !r.Ended.IsZero() {
		state += " after " + r.Ended.Sub(r.Started).Round(time.Second).String()
	}
	var trials []string
	for _, s := range []result.Status{result.OK, result.Failed, result.Timeout, result.Skipped} {
		if n := r.Counts[s]; n > 0 || s == result.OK {
			trials = append(trials, fmt.Sprintf("%d %s", n, report.StatusWord(s)))
		}
	}
	trials = append(trials, fmt.Sprintf("%d warm-up", r.Warmup))
	return []fact{
		{"Date", r.Started.UTC().Format("2 January 2006, 15:04 UTC")},
		{"Host", fmt.Sprintf("%s, %d CPUs, %s", r.Host.CPU, r.Host.CPUs, report.Quantity(float64(r.Host.Memory), result.Bytes))},
		{"Trials", strings.Join(trials, ", ")},
		{"State", state},
		{"Run", r.ID},
		{"Tool", strings.TrimSpace("Touchstone " + r.Tool.Version + " " + r.Tool.Commit)},
	}
}

func hostFacts(m *report.Model) []fact {
	h := &m.Run.Host
	root := "no"
	if h.Root {
		root = "yes"
	}
	all := []fact{
		{"Name", h.Hostname},
		{"System", h.OS},
		{"Kernel", h.Kernel},
		{"Architecture", h.Arch},
		{"CPU", h.CPU},
		{"Online CPUs", fmt.Sprint(h.CPUs)},
		{"Governor", h.Governor},
		{"Turbo", h.Turbo},
		{"SMT", h.SMT},
		{"Memory", report.Quantity(float64(h.Memory), result.Bytes)},
		{"Swap", report.Quantity(float64(h.Swap), result.Bytes)},
		{"Cgroup", h.Cgroup},
		{"Guest of", h.Virtual},
		{"Security modules", h.LSM},
		{"Mitigations", h.Mitigation},
		{"Kernel command line", h.Cmdline},
		{"Run as root", root},
		{"Tool", strings.TrimSpace(fmt.Sprintf("Touchstone %s %s, %s", m.Run.Tool.Version, m.Run.Tool.Commit, m.Run.Tool.Go))},
	}
	var known []fact
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

func newBenchmark(b *report.Benchmark, id string) *benchmark {
	out := &benchmark{Benchmark: b, ID: id, Table: newStatistics(b)}
	for i := range b.Layers {
		out.Layers = append(out.Layers, newLayers(&b.Layers[i]))
	}
	if phases := newPhases(b); phases != nil {
		out.Bars = append(out.Bars, phases)
	}
	for i := range b.Components {
		out.Bars = append(out.Bars, newComponents(&b.Components[i]))
	}
	out.Outcomes = outcomes(b)
	label := "place in the series"
	if strings.HasPrefix(b.Name, "scalability.") {
		label = "number of the container, in order of start"
	}
	for i := range b.Metrics {
		out.Strips = append(out.Strips, newStrip(&b.Metrics[i]))
		if c := newCurve(&b.Metrics[i], label); c != nil {
			out.Curves = append(out.Curves, *c)
		}
	}
	return out
}
