// Package reproduce compares the runs of a paper's plan with the paper: its claims, its tables and its figures. It is a model for layout
// like package analysis, and computes from runs without input or output.
//
// The comparison that survives a change of the machine is the ratio to the reference of the paper. Package analysis computes the ratio and its
// interval, paired by block. This package has no statistics. A claim compares two targets, so each of them is
// the baseline of a report in turn.
//
// # Verdicts
//
// A claim states that targets are better or worse than others by at least a factor, the margin, or similar up to a factor. One comparison
// agrees if the 95 % interval of its ratio is wholly on the claimed side of the margin. It disagrees if the interval is wholly on the other
// side. Otherwise it cannot tell. A claim of several comparisons disagrees if one of them does, and agrees only if all of them do.
//
// A comparison also cannot tell if its interval needs more blocks, if the metric depends on the speed of an emulated CPU, or if the side
// that looks better has lost trials. A comparison without a value is not measured, with the reason.
//
// The intervals of the claims are not adjusted for their number. Of twenty claims whose true ratio is exactly the margin, about one gets a
// verdict by chance.
package reproduce

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Run is a run of the paper's plan, with its report.
type Run struct {
	Run    result.Run
	Report report.Report
}

// Options describe the plans of the runs.
type Options struct {
	// Work are the benchmarks of the plans, in their order. A value of the paper is compared with the first one that it fits.
	Work []analysis.Key
	// Table restricts the result to a table of the paper. It is empty for all.
	Table string
	// Quick is set if the plans have quick parameters.
	Quick bool
	// Elsewhere is the name of the machine of imported runs. It is empty if the runs are of this machine.
	Elsewhere string
}

// Where is the place of our values in a sentence: "here", or "on NAME".
func (o Options) Where() string {
	if o.Elsewhere == "" {
		return "here"
	}
	return "on " + o.Elsewhere
}

// Origin states that the runs are imported. It is empty for runs of this machine.
func (o Options) Origin() string {
	if o.Elsewhere == "" {
		return ""
	}
	return "The runs were imported: they were measured on " + o.Elsewhere + ", and nothing was measured on this machine."
}

// Reproduction is the comparison of a paper with the runs of its plans.
type Reproduction struct {
	Paper paper.Paper
	Options
	// Runs are the reports of the runs, in the order of the plans.
	Runs   []report.Report
	Claims []Claim
	// Omitted counts the claims about benchmarks that Table does not need.
	Omitted int
	Tables  []Table
	Figures []Figure
}

// New compares a paper with at least one run.
func New(p paper.Paper, runs []Run, o Options) *Reproduction {
	s := source{work: o.Work, quick: o.Quick, where: o.Where(), views: map[view]*entry{}}
	r := &Reproduction{Paper: p, Options: o}
	for i, run := range runs {
		s.runs, s.sources = append(s.runs, run.Run), append(s.sources, analysis.NewSource(&runs[i].Run, analysis.Options{}))
		r.Runs = append(r.Runs, run.Report)
	}
	for _, c := range p.Claims {
		if o.Table != "" && !s.any(c.Of) {
			r.Omitted++
			continue
		}
		r.Claims = append(r.Claims, s.claim(c))
	}
	for i := range p.Tables {
		if o.Table == "" || p.Tables[i].Name == o.Table {
			r.Tables = append(r.Tables, s.table(&p.Tables[i]))
		}
	}
	if o.Table == "" {
		for _, f := range p.Figures {
			r.Figures = append(r.Figures, s.figure(f))
		}
	}
	return r
}

// Counts are the numbers of claims by verdict.
func (r *Reproduction) Counts() map[Verdict]int {
	counts := map[Verdict]int{}
	for _, c := range r.Claims {
		counts[c.Verdict]++
	}
	return counts
}

// Emulation is the note about emulated CPUs, empty without one.
func (r *Reproduction) Emulation() string {
	for i := range r.Runs {
		if e := finding.EmulationOf(r.Runs[i].Analysis); e != nil {
			return e.Note
		}
	}
	return ""
}

// source finds values of the paper in the runs.
type source struct {
	runs    []result.Run
	sources []*analysis.Source // by run
	work    []analysis.Key
	quick   bool
	where   string
	views   map[view]*entry
}

// view is a benchmark of a run compared with a baseline.
type view struct {
	run      int
	key      analysis.Key
	baseline string
	// metric is a series with only one value that counts, at a place. It is empty without one.
	metric string
	place  int
}

// entry is the benchmark of a view, or the reason why the run has none.
type entry struct {
	*analysis.Benchmark
	reason string
}

// view compares one benchmark of a run with a baseline.
func (s *source) view(v view) *entry {
	if s.views[v] == nil {
		var item *analysis.Item
		if v.metric != "" {
			item = &analysis.Item{Metric: v.metric, Place: v.place}
		}
		benchmark, reason := s.sources[v.run].Compare(v.key, v.baseline, item)
		s.views[v] = &entry{benchmark, reason}
	}
	return s.views[v]
}

// placeOf is the place of an item in the series of a benchmark: its tests are metrics too, in the order of the series.
func placeOf(run *result.Run, value paper.Of) (place int, series bool) {
	index := slices.IndexFunc(run.Bench, func(b result.Benchmark) bool { return b.Name == value.Benchmark })
	if index < 0 || value.Item == "" {
		return 0, false
	}
	metrics := run.Bench[index].Metrics
	series = slices.ContainsFunc(metrics, func(m result.Metric) bool { return m.Name == value.Metric && m.Series })
	return slices.IndexFunc(metrics, func(m result.Metric) bool { return m.Name == value.Item }), series
}

// key is the benchmark of a value. It reports false if no plan has it.
func (s *source) key(value paper.Of) (analysis.Key, bool) {
	index := slices.IndexFunc(s.work, func(k analysis.Key) bool { return k.Name == value.Benchmark && fits(value.Params, k.Params) })
	if index < 0 {
		return analysis.Key{}, false
	}
	return s.work[index], true
}

// notPlanned is the reason why no plan has the benchmark of a value.
func (s *source) notPlanned(value paper.Of) string {
	switch {
	case value.Benchmark == "":
		return "Touchstone has no benchmark for it"
	case s.quick:
		return "the quick plan has no " + value.Benchmark
	}
	return "no run of this plan has " + value.Benchmark
}

// fits reports whether the spelled parameters contain all of some parameters.
func fits(subset map[string]string, params string) bool {
	list := strings.Fields(params)
	for name, value := range subset {
		if !slices.Contains(list, name+"="+value) {
			return false
		}
	}
	return true
}

// any reports whether a plan has the benchmark of some value.
func (s *source) any(values []paper.Of) bool {
	return slices.ContainsFunc(values, func(value paper.Of) bool {
		_, has := s.key(value)
		return has
	})
}

// measured is a value of a target with its comparison.
type measured struct {
	analysis.Cell
	metric result.Metric
	// lack is the reason for a missing value. lackRatio is the reason for a missing ratio. Both are empty without a lack.
	lack, lackRatio string
}

// measure finds the value of a target, compared with another target. Without other the value has no comparison.
func (s *source) measure(value paper.Of, target, partner string) measured {
	found := measured{lack: "the run has no target " + target}
	if value.Unmeasured != "" {
		found.lack = value.Unmeasured
		return found
	}
	key, has := s.key(value)
	if !has {
		found.lack = s.notPlanned(value)
		return found
	}
	for i := range s.runs {
		has := func(name string) bool {
			return slices.ContainsFunc(s.runs[i].Targets, func(t result.Target) bool { return t.Name == name })
		}
		if !has(target) {
			continue
		}
		baseline, lack := partner, ""
		if partner != "" && !has(partner) {
			baseline, lack = "", "the run has no target "+partner
		}
		m := s.inRun(i, key, value, target, baseline)
		if lack != "" && m.lack == "" {
			m.lackRatio = lack
		}
		found = m
		if m.lack == "" && m.lackRatio == "" {
			break
		}
	}
	return found
}

// inRun finds the value of a target in a run that has the target.
func (s *source) inRun(run int, key analysis.Key, value paper.Of, target, partner string) measured {
	v := view{run: run, key: key, baseline: partner}
	if place, series := placeOf(&s.runs[run], value); series {
		v.metric, v.place = value.Metric, place
	}
	if v.place < 0 {
		return measured{lack: "not recorded: " + value.Item + " of " + value.Metric}
	}
	for _, t := range s.runs[run].Targets {
		if t.Name == target && t.Unavailable != "" {
			return measured{lack: target + " is not available: " + t.Unavailable}
		}
	}
	b := s.view(v)
	if b.Benchmark == nil {
		return measured{lack: b.reason}
	}
	section := b.Sections[0]
	for i := range b.Metrics {
		m := &b.Metrics[i]
		if m.Name != value.Metric {
			continue
		}
		found := measured{metric: m.Metric, lack: "not recorded on " + target}
		for n := range m.Rows {
			if m.Rows[n].Target != target {
				continue
			}
			found.Cell, found.lack = m.Rows[n].Cells[0], ""
			if found.Summary == nil {
				found.lack = target + ": " + found.Reason
			}
		}
		switch {
		case found.lack != "" || partner == "" || target == partner:
		case section.Baseline != partner:
			found.Comparison = nil
			found.lackRatio = s.lackOf(run, key, value, partner)
		case m.DerivedFrom != "":
			if parent := s.inRun(run, key, derived(value, m.DerivedFrom), target, partner); proportional(b.Benchmark, m) {
				found.Comparison, found.Emulated = parent.Comparison, parent.Emulated
			} else {
				found.lackRatio = m.Name + " is derived from " + m.DerivedFrom + ", and has no ratio"
			}
		case found.Comparison == nil:
			found.lackRatio = "no ratio, because " + m.WhyUnbased(partner)
		}
		return found
	}
	return measured{lack: "not recorded: " + value.Metric + " of " + key.Title()}
}

// lackOf is the reason why a target has no value.
func (s *source) lackOf(run int, key analysis.Key, value paper.Of, target string) string {
	if m := s.inRun(run, key, value, target, ""); m.lack != "" {
		return m.lack
	}
	return target + " has no value"
}

// derived is the value with another metric.
func derived(value paper.Of, metric string) paper.Of {
	value.Metric = metric
	return value
}

// proportional reports whether a derived metric is a multiple of its source on all targets, such as an index. Both then have the same
// ratios.
func proportional(b *analysis.Benchmark, m *analysis.Metric) bool {
	const tolerance = 1e-9
	index := slices.IndexFunc(b.Metrics, func(o analysis.Metric) bool { return o.Name == m.DerivedFrom })
	if index < 0 {
		return false
	}
	factor := 0.0
	for i := range m.Rows {
		value, source := m.Rows[i].Cells[0].Summary, b.Metrics[index].Rows[i].Cells[0].Summary
		if value == nil || source == nil {
			continue
		}
		f := value.Median / source.Median
		if factor == 0 {
			factor = f
		}
		if !(f > factor*(1-tolerance) && f < factor*(1+tolerance)) { // false for NaN
			return false
		}
	}
	return factor > 0
}
