package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
)

type suite struct {
	Name       string
	Components []component
}

// component is the benchmarks of one component of a suite, or of a whole short suite.
type component struct {
	// ID and Name are empty for a whole suite.
	ID, Name   string
	Benchmarks []*benchmark
	// Alarms counts the breaches.
	Alarms int
}

// mostTogether is the largest number of benchmarks in a suite that shows all of them. The benchmarks of a longer suite are in
// components, which are closed at first.
const mostTogether = 8

// newSuite arranges the benchmarks of a suite.
func newSuite(name string, list []*benchmark) suite {
	if len(list) <= mostTogether {
		return suite{Name: name, Components: []component{{Benchmarks: list}}}
	}
	out := suite{Name: name}
	for _, b := range list {
		title, _ := componentOf(b.Name)
		last := len(out.Components) - 1
		if last < 0 || out.Components[last].Name != title {
			out.Components = append(out.Components, component{ID: "c-" + b.ID, Name: title})
			last++
		}
		c := &out.Components[last]
		c.Benchmarks = append(c.Benchmarks, b)
		c.Alarms += len(b.Alarms)
	}
	return out
}

// Short is the name without the suite, for the table of contents.
func (c component) Short() string {
	_, suffix, _ := strings.Cut(c.Name, ".")
	return suffix
}

// componentOf splits a name into its first two components and the rest.
func componentOf(name string) (component, facet string) {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return name, name
	}
	return parts[0] + "." + parts[1], parts[2]
}

type benchmark struct {
	*analysis.Benchmark
	ID string
	// Extra is the parameters, if another benchmark of the report has the same name.
	Extra string
	// Conditions are the conditions in words, Alarms the breaches.
	Conditions []field
	Alarms     []string
	// Section and the fields below it are about the only run. Section is nil with several runs.
	Section  *analysis.Section
	Outcomes []outcome
	Strips   []strip
	// Worst are the worst cases of times.
	Worst []worstCase
	// Layers precede the plots, Bars follow them.
	Layers, Bars []*bars
	Curves       []curve
	Timelines    []timelines
	Shown        string // the trials of Timelines
	Table        *statistics
	// Heads and the fields below it are about several runs.
	Heads   []runHead
	Figures []sides
	Groups  []matrixGroup
	// Across are the typical ratios to the first run.
	Across []matrixGroup
	// Side is the page's content about several runs.
	Side *side
}

// Facet is the name without suite and component, for the table of contents.
func (b *benchmark) Facet() string {
	_, facet := componentOf(b.Name)
	return facet + b.Extra
}

// Short is the name without the suite, for the table of contents.
func (b *benchmark) Short() string {
	_, suffix, _ := strings.Cut(b.Name, ".")
	return suffix + b.Extra
}

// TrendLegend explains the trends of the curves.
func (b *benchmark) TrendLegend() string {
	if len(b.Trends()) == 0 {
		return ""
	}
	return finding.TrendLegend
}

// worstCase is the worst case of a metric by target.
type worstCase struct {
	Metric string
	Rows   []worstRow
}

type worstRow struct {
	Target, Largest, Text, Rarer string
	Refused                      bool
}

// newWorst collects the worst cases of the only run.
func newWorst(b *analysis.Benchmark) []worstCase {
	var list []worstCase
	for _, m := range b.Worsts() {
		c := worstCase{Metric: m.Name}
		for _, r := range m.Rows {
			if w := r.Cells[0].Worst; w != nil {
				c.Rows = append(c.Rows, worstRow{Target: r.Target, Largest: finding.Largest(w, m.Unit), Text: finding.Bounds(w, m.Unit), Rarer: finding.Rarer(w), Refused: w.Refusal != nil})
			}
		}
		list = append(list, c)
	}
	return list
}

// WorstLegend explains the worst cases.
func (b *benchmark) WorstLegend() string {
	if len(b.Worst) == 0 {
		return ""
	}
	return finding.WorstLegend
}

// Width counts the columns of its table of several runs.
func (b *benchmark) Width() int { return 1 + len(b.Heads) }

// benchmarks adds the sections of the benchmarks, and the overview.
func (p *page) benchmarks(r *report.Report) {
	names := map[string]int{}
	for _, b := range r.Benchmarks() {
		names[b.Name]++
	}
	count := 0
	var list []*benchmark
	var room room
	if p.Single != nil {
		var metrics []analysis.Metric
		for _, b := range r.Benchmarks() {
			metrics = append(metrics, b.Metrics...)
		}
		room = newRoom(metrics)
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		var members []*benchmark
		for n := range s.Benchmarks {
			count++
			b := &benchmark{Benchmark: &s.Benchmarks[n], ID: fmt.Sprintf("b%d", count)}
			if names[b.Name] > 1 {
				b.Extra = " " + b.Params
			}
			if p.Single != nil {
				b.single(room)
			} else {
				b.Side = p.Side
				b.sideBySide(r)
			}
			members = append(members, b)
		}
		p.Suites = append(p.Suites, newSuite(s.Name, members))
		list = append(list, members...)
	}
	if p.Single != nil {
		p.Matrix = newMatrix(&r.Runs[0], list)
	} else {
		p.Matrix = newSideMatrix(p.Side.Heads, list)
	}
}

// single adds the content about the only run. Its plots have the points that the room holds.
func (b *benchmark) single(r room) {
	s := b.Sections[0]
	b.Section, b.Table, b.Outcomes = s, newStatistics(b.Benchmark), outcomes(s)
	b.Worst = newWorst(b.Benchmark)
	for i := range s.Layers {
		b.Layers = append(b.Layers, newLayers(&s.Layers[i]))
	}
	if phases := newPhases(s); phases != nil {
		b.Bars = append(b.Bars, phases)
	}
	for i := range s.Components {
		b.Bars = append(b.Bars, newComponents(&s.Components[i]))
	}
	b.Shown = finding.ShownTrials(s)
	for i := range s.Timelines {
		b.Timelines = append(b.Timelines, newTimelines(&s.Timelines[i]))
	}
	for i := range s.Breaches {
		b.Alarms = append(b.Alarms, finding.BreachClause(&s.Breaches[i]))
	}
	for _, c := range s.Conditions {
		b.Conditions = append(b.Conditions, field{Name: c.Name, Text: c.Text()})
	}
	for i := range b.Metrics {
		b.Strips = append(b.Strips, newStrip(&b.Metrics[i], r.dots))
		if c := newCurve(&b.Metrics[i], cmp.Or(b.Place, "place in the series"), r); c != nil {
			b.Curves = append(b.Curves, *c)
		}
	}
}

// sideBySide adds the content about several runs.
func (b *benchmark) sideBySide(r *report.Report) {
	if b.Baseline == "" && b.Note != "" {
		b.Alarms = append(b.Alarms, b.Note+".")
	}
	for i, s := range b.Sections {
		if s == nil {
			continue
		}
		head := runHead{Key: keyOf(i), Label: r.Runs[i].Label}
		if b.Baseline == "" && s.Baseline != "" {
			head.Small = "to " + s.Baseline
		}
		b.Heads = append(b.Heads, head)
	}
	for _, c := range b.Benchmark.Conditions {
		var parts []string
		for _, g := range c.Groups() {
			switch {
			case g.Value == "":
			case c.Differs:
				parts = append(parts, g.Value+" on "+r.Labels(g.Runs))
			default:
				parts = append(parts, g.Value)
			}
		}
		b.Conditions = append(b.Conditions, field{Name: c.Name(), Text: strings.Join(parts, "; ")})
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		b.Figures = append(b.Figures, newSides(r, b.Benchmark, m)...)
		b.Groups = append(b.Groups, newSideGroup(b.Benchmark, m))
		if rows := acrossRows(m); len(rows) > 0 {
			b.Across = append(b.Across, matrixGroup{Title: m.Name, Rows: rows})
		}
	}
}

type outcome struct{ Targets, Counts, Why string }

// mostNamed is the largest number of targets that a line names if they have the same counts and nothing is missing.
const mostNamed = 4

// outcomes counts the trials of each target. Many targets with the same outcome share a line.
func outcomes(s *analysis.Section) []outcome {
	var list []outcome
	var groups [][]string
	for i := range s.Targets {
		o := &s.Targets[i]
		counts := o.Counts()
		if o.Disturbed > 0 {
			counts += fmt.Sprintf(" (%d disturbed)", o.Disturbed)
		}
		index := -1
		if len(s.Targets) > mostColumns {
			index = slices.IndexFunc(list, func(item outcome) bool { return item.Counts == counts && item.Why == o.Why() })
		}
		if index < 0 {
			index = len(list)
			list, groups = append(list, outcome{Counts: counts, Why: o.Why()}), append(groups, nil)
		}
		groups[index] = append(groups[index], o.Target)
	}
	for i, names := range groups {
		list[i].Targets = strings.Join(names, ", ")
		if list[i].Why == "" && len(names) > mostNamed {
			list[i].Targets = fmt.Sprintf("%d targets", len(names))
		}
		if len(names) > 1 {
			list[i].Counts += " each"
		}
	}
	return list
}
