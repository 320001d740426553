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
	// Alarms are its breaches, in words.
	Alarms []string
	Matrix *matrix
	Suites []suite
	Host   []fact
	Method method
	// Missing are the cells that lack trials, alike ones together, with the words for their ends.
	Missing []missing
}

type fact struct{ Name, Value string }

type suite struct {
	Name       string
	Components []component
}

// component is the benchmarks of one component of a suite, or all of a suite that is short.
type component struct {
	// ID and Name are empty for a whole suite.
	ID, Name   string
	Benchmarks []*benchmark
	// Alarms counts what does not hold.
	Alarms int
}

// mostTogether is how many benchmarks of a suite are shown at once. Those of a longer suite stand by components,
// which are closed at first.
const mostTogether = 8

// newSuite arranges the benchmarks of a suite.
func newSuite(name string, all []*benchmark) suite {
	if len(all) <= mostTogether {
		return suite{Name: name, Components: []component{{Benchmarks: all}}}
	}
	out := suite{Name: name}
	for _, b := range all {
		of, _ := componentOf(b.Name)
		last := len(out.Components) - 1
		if last < 0 || out.Components[last].Name != of {
			out.Components = append(out.Components, component{ID: "c-" + b.ID, Name: of})
			last++
		}
		c := &out.Components[last]
		c.Benchmarks = append(c.Benchmarks, b)
		c.Alarms += len(b.Breaches)
	}
	return out
}

// Short is the name without the suite, for the table of contents.
func (c component) Short() string {
	_, short, _ := strings.Cut(c.Name, ".")
	return short
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
	// Telling is the parameters, where they tell it from another benchmark of the report.
	Telling string
	// Conditions are those of the benchmark, in words; Alarms are what does not hold.
	Conditions []fact
	Alarms     []string
}

// Facet is the name without suite and component, for the table of contents.
func (b *benchmark) Facet() string {
	_, facet := componentOf(b.Name)
	return facet + b.Telling
}

// Short is the name without the suite, for the table of contents.
func (b *benchmark) Short() string {
	_, short, _ := strings.Cut(b.Name, ".")
	return short + b.Telling
}

// telling gives the parameters of a benchmark, after a blank, if another one has the same name.
func telling(m *report.Model, b *report.Benchmark) string {
	for i := range m.Suites {
		for j := range m.Suites[i].Benchmarks {
			if other := &m.Suites[i].Benchmarks[j]; other.Name == b.Name && other.Params != b.Params {
				return " " + b.Params
			}
		}
	}
	return ""
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
		var all []*benchmark
		for i := range s.Benchmarks {
			count++
			b := newBenchmark(&s.Benchmarks[i], fmt.Sprintf("b%d", count))
			b.Telling = telling(m, b.Benchmark)
			all = append(all, b)
		}
		p.Suites = append(p.Suites, newSuite(s.Name, all))
	}
	for i := range m.Findings.Breaches {
		p.Alarms = append(p.Alarms, tied(m.Findings.Breaches[i].String()))
	}
	p.Matrix = newMatrix(m)
	p.Findings.Comparisons = tied(m.Findings.Comparisons)
	for _, s := range m.Findings.Statements {
		p.Findings.Statements = append(p.Findings.Statements, tied(s))
	}
	for _, s := range m.Findings.NotMeasured {
		p.Findings.NotMeasured = append(p.Findings.NotMeasured, tied(s))
	}
	p.Missing = missingRows(m)
	p.Method = method{
		Seed: m.Seed, RunSeed: m.Run.Seed, Resamples: stats.Resamples, Least: stats.MinSamples, Families: m.Families,
		Alpha: report.Percent(stats.Alpha), Power: report.Percent(stats.Power), MaybeFalse: int(stats.Alpha*float64(m.Families) + 0.5),
		Empty: report.Quantity(m.Run.Overhead.EmptyRegion.Seconds(), result.Seconds), Exec: report.Quantity(m.Run.Overhead.Exec.Seconds(), result.Seconds),
		Self: report.Percent(m.Run.Self), Plan: m.Run.Plan,
	}
	return p
}

// missingRows lists the cells that lack trials, alike ones together.
func missingRows(m *report.Model) []missing {
	var all []missing
	for _, miss := range m.MissingGroups() {
		all = append(all, missing{
			Title: miss.Title(), Targets: miss.Targets,
			What:   fmt.Sprintf("%d of %d %s", miss.Count, miss.Total, report.StatusWord(miss.Status)),
			Reason: miss.Reason, Output: strings.TrimSpace(miss.Output),
		})
	}
	return all
}

// tied keeps a number together with what follows it: "95 %", "2.4 ×".
func tied(s string) string {
	return strings.NewReplacer(" %", "\u00a0%", " ×,", "\u00a0×,", " × ", "\u00a0×\u00a0", " ms,", "\u00a0ms,", " µs,", "\u00a0µs,", " ns,", "\u00a0ns,").Replace(s)
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

// hostFacts are the facts of a run's machine that are known.
func hostFacts(m *report.Model) []fact {
	var known []fact
	for _, f := range report.HostFacts(&m.Run.Run) {
		if f.Text != "" {
			known = append(known, fact{f.Name, f.Text})
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
	for i := range b.Breaches {
		out.Alarms = append(out.Alarms, tied(b.Breaches[i].Short()))
	}
	for _, c := range b.Conditions {
		out.Conditions = append(out.Conditions, fact{c.Name, strings.TrimPrefix(c.String(), c.Name+" ")})
	}
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
