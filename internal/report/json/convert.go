package reportjson

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func newDocument(r *report.Report) document {
	run := &r.Runs[0]
	doc := document{
		Schema: SchemaVersion, Kind: Kind, Run: newRun(run), Method: newMethod(run),
		Findings: findings{
			Breaches: newBreaches(r, 0), Statements: list(r.Findings.Statements), Comparisons: r.Findings.Comparisons,
			NotMeasured: strings.Join(r.Findings.NotMeasured, "; "),
		},
		Targets: newTargets(run), Benchmarks: []benchmark{}, Missing: newMissing(run), Unmeasured: newUnmeasured(run), Warnings: newWarnings(run),
	}
	for _, b := range r.Benchmarks() {
		doc.Benchmarks = append(doc.Benchmarks, newBenchmark(b))
	}
	return doc
}

func newTargets(r *report.Run) []result.Target {
	all := []result.Target{}
	for _, t := range r.Targets {
		all = append(all, t.Target)
	}
	return all
}

func newWarnings(r *report.Run) []warnings {
	all := []warnings{}
	for _, g := range r.Warnings {
		all = append(all, warnings(g))
	}
	return all
}

func newRun(r *report.Run) run {
	return run{
		ID: r.ID, Name: r.Name, State: r.State, Started: r.Started.UTC(), Ended: r.Ended.UTC(),
		Tool: r.Tool, Seed: r.Seed, Baseline: r.Baseline, Host: r.Host, Overhead: r.Overhead,
		SelfCPU: digits(r.Self), Images: r.Images, Caveats: r.Caveats, Trials: r.Counts, Warmup: r.Warmup,
	}
}

func newMethod(r *report.Run) method {
	return method{
		Seed: r.Seed, Resamples: stats.Resamples, Interval: 0.95, Alpha: stats.Alpha, Power: stats.Power,
		MinSamples: stats.MinSamples, Family: "all targets against the baseline on one metric of one benchmark", Families: r.Families, Comparisons: r.Comparisons,
		Ratio: "median over blocks of target / baseline within the block; overhead is |ratio - 1|",
	}
}

func newBreaches(r *report.Report, run int) []breach {
	var all []breach
	for _, bench := range r.Benchmarks() {
		if bench.Sections[run] == nil {
			continue
		}
		for _, b := range bench.Sections[run].Breaches {
			all = append(all, breach{
				Benchmark: b.Benchmark, Params: b.Params, Target: b.Target, Metric: b.Metric.Name, Unit: b.Metric.Unit,
				Median: number(b.Median), Most: b.Metric.Bound.Most, Trials: b.Trials, Doubt: b.Doubt, Text: b.String(),
			})
		}
	}
	return all
}

func newUnmeasured(r *report.Run) []unmeasured {
	var all []unmeasured
	for _, u := range r.Unmeasured {
		converted := unmeasured{Benchmarks: u.Benchmarks}
		for _, r := range u.Reasons {
			converted.Reasons = append(converted.Reasons, reason(r))
		}
		all = append(all, converted)
	}
	return all
}

func newMissing(r *report.Run) []missing {
	all := []missing{}
	for _, miss := range r.Missing {
		all = append(all, missing{
			Benchmark: miss.Benchmark, Params: miss.Params, Target: miss.Target,
			Status: miss.Status, Count: miss.Count, Total: miss.Total, Reason: miss.Reason,
		})
	}
	return all
}

// list clones s into a slice that is not nil: an empty list is [], not null.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// newBenchmark describes a benchmark of the only run.
func newBenchmark(b *report.Benchmark) benchmark {
	s := b.Sections[0]
	out := benchmark{
		Name: b.Name, Params: b.Params, Source: b.Source, Baseline: s.Baseline, BaselineNote: s.BaselineNote,
		Blocks: s.Blocks, Outcomes: []outcome{}, Metrics: []metric{}, Unrecorded: slices.Clone(s.Unrecorded), Unbased: slices.Clone(s.Unbased),
	}
	for _, o := range s.Targets {
		out.Outcomes = append(out.Outcomes, outcome{
			Target: o.Target, OK: o.OK, Failed: o.Failed, Timeout: o.Timeout, Skipped: o.Skipped,
			Warmup: o.Warmup, Disturbed: o.Disturbed, Reason: o.Reason, Phases: newPhases(o.Phases),
		})
	}
	for _, m := range b.Metrics {
		converted := metric{Name: m.Name, Unit: m.Unit, Better: m.Better, Series: m.Series, DerivedFrom: m.DerivedFrom, Bound: m.Bound, Cells: []cell{}}
		for i := range m.Rows {
			converted.Cells = append(converted.Cells, newCell(&m, &m.Rows[i]))
		}
		out.Metrics = append(out.Metrics, converted)
	}
	for _, l := range s.Layers {
		out.Layers = append(out.Layers, newLayers(l))
	}
	for _, c := range s.Components {
		out.Components = append(out.Components, newComponents(c))
	}
	for _, c := range s.Conditions {
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

func newCell(m *report.Metric, row *report.Row) cell {
	c := &row.Cells[0]
	out := cell{Target: row.Target, Reason: c.Reason, Baseline: c.Baseline, Breached: m.Breached(c), Comparison: newComparison(c.Comparison, m.Metric)}
	if s := c.Summary; s != nil {
		out.N, out.Median, out.Interval = s.N, number(s.Median), bounds(s.CI)
		out.Mean, out.SD, out.Min, out.Max, out.MAD = number(s.Mean), number(s.SD), number(s.Min), number(s.Max), number(s.MAD)
		out.P90, out.P95, out.P99 = s.P90, s.P95, s.P99
		out.Warnings = newCellWarnings(c)
	}
	if c.Overhead != nil {
		out.Overhead = number(*c.Overhead)
	}
	for _, p := range c.Curve {
		out.Curve = append(out.Curve, digits(p.Median))
	}
	return out
}

func newCellWarnings(c *report.Cell) []warning {
	var all []warning
	for _, w := range c.Summary.Warnings {
		all = append(all, warning(w))
	}
	return all
}

// newComparison is nil for a nil comparison.
func newComparison(k *stats.Comparison, m result.Metric) *comparison {
	if k == nil {
		return nil
	}
	return &comparison{
		Pairs: k.N, Ratio: number(k.Ratio), Interval: bounds(k.CI), P: number(k.P), Adjusted: number(k.Adjusted),
		Verdict: k.Verdict, Word: report.VerdictWord(k.Verdict, m), Detectable: number(k.Detectable),
	}
}
