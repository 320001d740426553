package reportjson

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func newDocument(m *report.Model) document {
	doc := document{
		Schema: SchemaVersion, Kind: Kind,
		Run:        newRun(m),
		Method:     newMethod(m.Seed, m.Families),
		Findings:   findings{Statements: list(m.Findings.Statements), Comparisons: m.Findings.Comparisons, NotMeasured: strings.Join(m.Findings.NotMeasured, "; ")},
		Targets:    []result.Target{},
		Benchmarks: []benchmark{},
		Missing:    []missing{},
		Warnings:   []warnings{},
	}
	doc.Findings.Breaches = newBreaches(m)
	doc.Unmeasured = newUnmeasured(m)
	for _, t := range m.Targets {
		doc.Targets = append(doc.Targets, t.Target)
	}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			doc.Benchmarks = append(doc.Benchmarks, newBenchmark(b))
		}
	}
	doc.Missing = append(doc.Missing, newMissing(m)...)
	for _, g := range m.Warnings {
		doc.Warnings = append(doc.Warnings, warnings(g))
	}
	return doc
}

func newRun(m *report.Model) run {
	r := &m.Run
	return run{
		ID: r.ID, Name: r.Name, State: r.State, Started: r.Started.UTC(), Ended: r.Ended.UTC(),
		Tool: r.Tool, Seed: r.Seed, Baseline: r.Baseline, Host: r.Host, Overhead: r.Overhead,
		SelfCPU: digits(r.Self), Images: r.Images, Caveats: r.Caveats, Trials: r.Counts, Warmup: r.Warmup,
	}
}

func newMethod(seed uint64, families int) method {
	return method{
		Seed: seed, Resamples: stats.Resamples, Interval: 0.95, Alpha: stats.Alpha, Power: stats.Power,
		MinSamples: stats.MinSamples, Family: "all targets against the baseline on one metric of one benchmark", Families: families,
	}
}

func newBreaches(m *report.Model) []breach {
	var all []breach
	for _, b := range m.Findings.Breaches {
		all = append(all, breach{
			Benchmark: b.Benchmark, Params: b.Params, Target: b.Target, Metric: b.Metric.Name, Unit: b.Metric.Unit,
			Median: number(b.Median), Most: b.Metric.Bound.Most, Trials: b.Trials, Doubt: b.Doubt, Text: b.String(),
		})
	}
	return all
}

func newUnmeasured(m *report.Model) []unmeasured {
	var all []unmeasured
	for _, u := range m.Unmeasured {
		converted := unmeasured{Benchmarks: u.Benchmarks}
		for _, r := range u.Reasons {
			converted.Reasons = append(converted.Reasons, reason(r))
		}
		all = append(all, converted)
	}
	return all
}

func newMissing(m *report.Model) []missing {
	var all []missing
	for _, miss := range m.Missing {
		all = append(all, missing{
			Benchmark: miss.Benchmark, Params: miss.Params, Target: miss.Target,
			Status: miss.Status, Count: miss.Count, Total: miss.Total, Reason: miss.Reason,
		})
	}
	return all
}

// list clones s into a slice that is not nil: an empty list is [], not null.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

func newBenchmark(b report.Benchmark) benchmark {
	out := benchmark{
		Name: b.Name, Params: b.Params, Source: b.Source, Baseline: b.Baseline, BaselineNote: b.BaselineNote,
		Blocks: b.Blocks, Outcomes: []outcome{}, Metrics: []metric{}, Unrecorded: slices.Clone(b.Unrecorded), Unbased: slices.Clone(b.Unbased),
	}
	for _, o := range b.Targets {
		converted := outcome{
			Target: o.Target, OK: o.OK, Failed: o.Failed, Timeout: o.Timeout, Skipped: o.Skipped,
			Warmup: o.Warmup, Disturbed: o.Disturbed, Reason: o.Reason,
		}
		converted.Phases = newPhases(o.Phases)
		out.Outcomes = append(out.Outcomes, converted)
	}
	for _, m := range b.Metrics {
		converted := metric{Name: m.Name, Unit: m.Unit, Better: m.Better, Series: m.Series, Bound: m.Bound, Cells: []cell{}}
		for _, c := range m.Cells {
			cell := newCell(c, m.Unit)
			cell.Breached = m.Breached(&c)
			converted.Cells = append(converted.Cells, cell)
		}
		out.Metrics = append(out.Metrics, converted)
	}
	for _, l := range b.Layers {
		out.Layers = append(out.Layers, newLayers(l))
	}
	for _, c := range b.Components {
		out.Components = append(out.Components, newComponents(c))
	}
	for _, c := range b.Conditions {
		converted := condition{Name: c.Name}
		for _, v := range c.Values {
			converted.Values = append(converted.Values, conditionValue(v))
		}
		out.Conditions = append(out.Conditions, converted)
	}
	return out
}

func newPhases(phases []report.Phase) []phase {
	var out []phase
	for _, p := range phases {
		out = append(out, phase{Name: p.Name, Seconds: digits(p.Seconds), Times: p.Times, Steps: newPhases(p.Steps)})
	}
	return out
}

func newLayers(l report.Layers) layers {
	out := layers{Metric: l.Metric.Name, Unit: l.Metric.Unit}
	for _, s := range l.Stacks {
		converted := stack{Target: s.Target, Runtime: s.Runtime, difference: newDifference(s.Total), Remainder: number(s.Remainder), Note: s.Note}
		for _, p := range s.Parts {
			converted.Parts = append(converted.Parts, part{
				Layers: report.LayerNames()[p.First : p.Last+1], difference: newDifference(p.Difference), Subtracted: p.Subtracted,
			})
		}
		out.Stacks = append(out.Stacks, converted)
	}
	return out
}

func newDifference(d stats.Difference) difference {
	return difference{Blocks: d.N, Median: number(d.Median), Interval: bounds(d.CI)}
}

func newComponents(c report.Components) components {
	out := components{Title: c.Title, Unit: c.Unit}
	for _, r := range c.Rows {
		row := componentRow{Target: r.Target, Total: newEstimate(&r.Total)}
		for i, cell := range r.Cells {
			if cell != nil {
				row.Components = append(row.Components, component{Name: c.Names[i], Metric: c.Metrics[i], estimate: newEstimate(cell)})
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func newEstimate(s *stats.Summary) estimate {
	return estimate{N: s.N, Median: number(s.Median), Interval: bounds(s.CI)}
}

func newCell(c report.Cell, unit result.Unit) cell {
	out := cell{Target: c.Target, Reason: c.Reason, Baseline: c.Baseline}
	if s := c.Summary; s != nil {
		out.N, out.Median, out.Interval = s.N, number(s.Median), bounds(s.CI)
		out.Mean, out.SD, out.Min, out.Max, out.MAD = number(s.Mean), number(s.SD), number(s.Min), number(s.Max), number(s.MAD)
		out.P90, out.P95, out.P99 = s.P90, s.P95, s.P99
		for _, w := range s.Warnings {
			out.Warnings = append(out.Warnings, warning(w))
		}
	}
	out.Comparison = newComparison(c.Comparison, unit)
	if c.Overhead != nil {
		out.Overhead = number(*c.Overhead)
	}
	for _, p := range c.Curve {
		out.Curve = append(out.Curve, digits(p.Median))
	}
	return out
}

// newComparison is nil if there is none.
func newComparison(k *stats.Comparison, unit result.Unit) *comparison {
	if k == nil {
		return nil
	}
	return &comparison{
		Pairs: k.N, Ratio: number(k.Ratio), Interval: bounds(k.CI), P: number(k.P), Adjusted: number(k.Adjusted),
		Verdict: k.Verdict, Word: report.VerdictWord(k.Verdict, unit), Detectable: number(k.Detectable),
	}
}
