package reportjson

import (
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

// single is the document of the only run.
func single(r *report.Report) object {
	source := &r.Runs[0]
	doc := object{
		{"schema_version", SchemaVersion},
		{"kind", Kind},
		optional("emulation", emulation(r)),
		{"run", run(source)},
		{"method", method(r, source)},
		optional("scorecard", scorecard(&source.Scorecard)),
		{"findings", object{
			optional("broken_bounds", breaches(r, 0)),
			optional("summary", r.Findings.Summary),
			{"statements", list(r.Findings.Statements)},
			optional("comparisons", r.Findings.Comparisons),
			optional("withheld", r.Findings.Withheld),
			optional("failures", r.Findings.Failures),
			optional("not_measured", strings.Join(r.Findings.NotMeasured, "; ")),
		}},
		{"targets", targets(source)},
		{"benchmarks", each(r.Benchmarks(), benchmark)},
	}
	return append(doc, gaps(source, r.Warnings[0])...)
}

// joint is the document of several runs. It has each run once. Other parts refer to a run by its place in runs.
func joint(r *report.Report) object {
	var runs []object
	for i := range r.Runs {
		source := &r.Runs[i]
		// The content of the report about this run alone.
		runs = append(runs, append(object{
			{"label", source.Label},
			{"machine", source.Machine},
			{"run", run(source)},
			{"method", method(r, source)},
			{"targets", targets(source)},
			optional("scorecard", scorecard(&source.Scorecard)),
			optional("broken_bounds", breaches(r, i)),
		}, gaps(source, r.Warnings[i])...))
	}
	return object{
		{"schema_version", SchemaVersion},
		{"kind", JointKind},
		optional("emulation", emulation(r)),
		{"absolute_values", finding.AbsoluteNote(r.Analysis)},
		{"across_machines", r.AcrossMachines}, // whether absolute values are compared
		{"machines", each(r.Machines, func(m *analysis.Machine) object {
			return object{{"name", m.Name}, {"nature", m.Nature}, {"runs", m.Runs}}
		})},
		{"runs", list(runs)},
		{"facts", each(r.Facts, factRow)},
		{"versions", each(r.Versions, factRow)},
		{"findings", object{
			optional("broken_bounds", r.Findings.Breaches),
			{"opposite", list(r.Findings.Opposite)},
			{"statements", list(r.Findings.Statements)},
			optional("comparisons", r.Findings.Comparisons),
			optional("withheld", r.Findings.Withheld),
			optional("failures", r.Findings.Failures),
		}},
		{"benchmarks", each(r.Benchmarks(), jointBenchmark)},
		{"coverage", each(r.Coverage, coverage)},
	}
}

// emulation describes the runs of machines with an emulated CPU. It is nil without one.
func emulation(r *report.Report) object {
	e := finding.EmulationOf(r.Analysis)
	if e == nil {
		return nil
	}
	return object{{"runs", e.Runs}, {"certain", e.Certain}, {"speed_verdicts", e.Verdicts}, {"note", e.Note}}
}

func run(r *analysis.Run) object {
	return object{
		{"id", r.ID},
		{"name", r.Name},
		{"state", r.State},
		{"started", r.Started.UTC()},
		optional("ended", r.Ended.UTC()),
		{"tool", r.Tool},
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"baseline", r.Baseline},
		{"host", r.Host},
		{"overhead", r.Overhead},
		{"self_cpu_share", digits(r.Self)},
		optional("images", r.Images),
		optional("caveats", r.Caveats),
		optional("stopping", r.Stopping),
		{"trials", r.Counts},
		{"warmup_trials", r.Warmup},
	}
}

// method describes the numbers of a run.
func method(source *report.Report, r *analysis.Run) object {
	return object{
		{"bootstrap_seed", strconv.FormatUint(r.Seed, 10)},
		{"bootstrap_resamples", stats.Resamples},
		{"interval", 0.95},
		{"family_alpha", stats.Alpha},
		{"detectable_power", stats.Power},
		optional("min_effect", source.MinEffect),
		{"min_samples", stats.MinSamples},
		{"family", "all targets against the baseline on one metric of one benchmark"},
		{"families", r.Families},
		{"comparisons", r.Comparisons},  // in all families
		{"all_comparisons", r.Together}, // with a p-value
		{"differences", r.Differences},
		{"differences_over_all_comparisons", r.Everywhere},
		{"false_differences_to_expect", digits(stats.Alpha * float64(r.Families))}, // among those in their metric alone, if nothing differs
		optional("withheld", r.Withheld),
		{"ratio", "Hodges-Lehmann estimate of target / baseline within blocks; overhead is |ratio - 1|"},
	}
}

// scorecard lists the dimensions with a value on some target.
func scorecard(c *analysis.Scorecard) []object {
	var rows []object
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Unmeasured() {
			continue
		}
		var scores []object
		for n := range r.Scores {
			scores = append(scores, score(c.Targets[n], &r.Scores[n]))
		}
		rows = append(rows, object{{"dimension", r.Dimension}, optional("goal", r.Goal), {"targets", scores}})
	}
	return rows
}

func score(target string, s *analysis.Score) object {
	out := object{{"target", target}, optional("verdict", s.Verdict)}
	if s.Value == nil {
		return out
	}
	out = append(
		out, member{"benchmark", s.Benchmark.Name}, optional("params", s.Benchmark.Params), member{"metric", s.Metric.Name},
		member{"unit", s.Metric.Unit}, member{"metrics", s.Metrics}, optional("metrics_without_a_value", s.Lacking), member{"text", finding.Score(s)},
		member{"median", number(s.Value.Median)}, optional("interval", interval(s.Value.CI)),
	)
	if c := s.Comparison; c != nil {
		out = append(out, member{"baseline", s.Baseline}, member{"ratio", number(c.Ratio)}, optional("ratio_interval", interval(c.CI)))
	}
	if m := s.Memory; m != nil {
		out = append(out, member{"overhead", number(m.Median)}, optional("overhead_interval", interval(m.CI)), member{"share_of_memory", digits(s.Share)})
	}
	return out
}

func targets(r *analysis.Run) []result.Target {
	list := []result.Target{}
	for _, t := range r.Targets {
		list = append(list, t.Target)
	}
	return list
}

// breaches are the medians beyond the bounds of their metrics.
func breaches(r *report.Report, run int) []object {
	var list []object
	for _, bench := range r.Benchmarks() {
		if bench.Sections[run] == nil {
			continue
		}
		list = append(list, each(bench.Sections[run].Breaches, func(b *analysis.Breach) object {
			return object{
				{"benchmark", b.Name},
				optional("params", b.Params),
				{"target", b.Target},
				{"metric", b.Metric.Name},
				{"unit", b.Metric.Unit},
				{"median", number(b.Median)},
				{"most", b.Metric.Bound.Most},
				{"trials", b.Trials},
				optional("doubt", b.Doubt),
				{"text", finding.Breach(b)},
			}
		})...)
	}
	return list
}

// gaps are the missing numbers of a run and the reasons to trust the others less. The trials of a benchmark that every target
// skipped are in without_a_number too.
func gaps(r *analysis.Run, warnings []finding.WarningGroup) object {
	return object{
		{"without_a_number", each(r.Missing, func(m *analysis.Missing) object {
			return object{
				{"benchmark", m.Name},
				optional("params", m.Params),
				{"target", m.Target},
				{"status", m.Status},
				{"count", m.Count},
				{"of", m.Total},
				{"reason", m.Reason},
			}
		})},
		optional("failed_calls", each(r.FailedCalls, func(f *analysis.FailedCalls) object {
			return object{{"target", f.Target}, {"call", f.Call}, {"failed", f.Failed}, {"of", f.Total}}
		})),
		optional("not_measured", each(r.Unmeasured, func(u *analysis.Unmeasured) object {
			reasons := each(u.Reasons, func(r *analysis.Reason) object {
				return object{{"text", r.Text}, optional("targets", r.Targets)}
			})
			return object{{"benchmarks", u.Benchmarks}, {"reasons", reasons}}
		})),
		{"warnings", each(warnings, func(g *finding.WarningGroup) object {
			return object{{"title", g.Title}, optional("advice", g.Advice), {"items", g.Items}}
		})},
	}
}

// benchmark is a benchmark of the only run.
func benchmark(pointer **analysis.Benchmark) object {
	b := *pointer
	s := b.Sections[0]
	return object{
		{"name", b.Name},
		optional("params", b.Params),
		optional("source", b.Source),
		optional("baseline", s.Baseline),
		optional("baseline_note", s.BaselineNote),
		{"blocks", s.Blocks},
		{"outcomes", each(s.Targets, outcome)},
		{"metrics", each(b.Metrics, metric)},
		optional("unrecorded", s.Unrecorded),
		optional("without_baseline", s.Unbased),
		optional("layers", each(s.Layers, layers)),
		optional("components", each(s.Components, components)),
		optional("timelines", each(s.Timelines, timelines)),
		optional("statements", each(s.Stated, condition)),
		optional("conditions", each(s.Conditions, condition)),
	}
}

func condition(c *analysis.Condition) object {
	return object{{"name", c.Name}, {"values", each(c.Values, func(v *analysis.ConditionValue) object {
		return object{{"value", v.Value}, optional("targets", v.Targets)}
	})}}
}

func outcome(o *analysis.Outcome) object {
	return object{
		{"target", o.Target},
		{"ok", o.OK},
		{"failed", o.Failed},
		{"timeout", o.Timeout},
		{"skipped", o.Skipped},
		{"warmup", o.Warmup},
		{"disturbed", o.Disturbed},
		optional("lost", o.Lost),
		optional("reason", o.Reason),
		optional("phases", each(o.Phases, phase)),
	}
}

func phase(p *analysis.Phase) object {
	return object{{"name", p.Name}, {"median_s", digits(p.Seconds)}, {"times", p.Times}, optional("steps", each(p.Steps, phase))}
}

// layers is the split of a metric into layers.
func layers(l *analysis.Layers) object {
	stacks := each(l.Stacks, func(s *analysis.Stack) object {
		stack := append(object{{"target", s.Target}, {"runtime", s.Runtime}}, difference(s.Total)...)
		return append(stack, object{
			{"parts", each(s.Parts, func(p *analysis.Part) object {
				part := append(object{{"layers", analysis.LayerNames()[p.First : p.Last+1]}}, difference(p.Difference)...)
				return append(part, member{"subtracted", p.Subtracted})
			})},
			{"remainder", number(s.Remainder)},
			optional("note", finding.StackNote(s)),
		}...)
	})
	return object{{"metric", l.Metric.Name}, {"unit", l.Metric.Unit}, {"targets", stacks}}
}

func difference(d stats.Difference) object {
	return object{{"blocks", d.N}, {"median", number(d.Median)}, {"interval", interval(d.CI)}}
}

// components is a cost by the component that caused it.
func components(c *analysis.Components) object {
	rows := each(c.Rows, func(r *analysis.ComponentRow) object {
		var parts []object
		for i, cell := range r.Cells {
			if cell != nil {
				parts = append(parts, append(object{{"name", c.Names[i]}, {"metric", c.Metrics[i]}}, estimate(cell)...))
			}
		}
		return object{{"target", r.Target}, {"together", estimate(&r.Total)}, {"components", parts}}
	})
	return object{{"title", c.Title}, {"unit", c.Unit}, {"targets", rows}}
}

// timelines are summaries of the timelines of a group. The values are in the document of the run, under the number of the trial.
func timelines(t *analysis.Timelines) object {
	panels := each(t.Panels, func(p *analysis.Panel) object {
		var lines []object
		for i, l := range p.Lines {
			if l != nil {
				var mean any // unknown with a gap
				if l.Mean != nil {
					mean = number(*l.Mean)
				}
				lines = append(lines, object{
					{"name", t.Names[i]},
					{"n", len(l.Values)},
					{"first", number(l.First)},
					{"min", number(l.Min)},
					{"mean", mean},
					{"max", number(l.Max)},
					{"last", number(l.Last)},
				})
			}
		}
		return object{{"target", p.Target}, {"trial", p.Seq}, {"block", p.Block}, {"trials", p.Trials}, {"lines", lines}}
	})
	return object{{"group", t.Title}, {"unit", t.Unit}, {"targets", panels}}
}

// estimate is a median with its interval. Without a summary both are null.
func estimate(s *stats.Summary) object {
	if s == nil {
		return object{{"n", 0}, {"median", nil}, {"interval", nil}}
	}
	return object{{"n", s.N}, {"median", number(s.Median)}, {"interval", interval(s.CI)}}
}

func metric(m *analysis.Metric) object {
	return object{
		{"name", m.Name},
		{"unit", m.Unit},
		{"better", m.Better},
		optional("series", m.Series),
		optional("trend_per", m.Trend),
		optional("derived_from", m.DerivedFrom), // a derived metric has no comparison
		optional("bound", m.Bound),
		{"cells", each(m.Rows, func(r *analysis.Row) object { return cell(m, r) })},
	}
}

// cell is a metric on a target of the only run.
func cell(m *analysis.Metric, row *analysis.Row) object {
	c := &row.Cells[0]
	s := c.Summary
	out := append(object{{"target", row.Target}, optional("reason", c.Reason)}, estimate(s)...)
	if s == nil {
		out = append(out, object{{"mean", nil}, {"sd", nil}, {"min", nil}, {"max", nil}, {"mad", nil}}...)
	} else {
		out = append(out, object{
			{"mean", number(s.Mean)},
			{"sd", number(s.SD)},
			{"min", number(s.Min)},
			{"max", number(s.Max)},
			{"mad", number(s.MAD)},
			optional("p90", s.P90),
			optional("p95", s.P95),
			optional("p99", s.P99),
		}...)
	}
	var overhead member
	if c.Overhead != nil {
		overhead = member{"overhead", number(*c.Overhead)}
	}
	var curve []float64
	for _, p := range c.Curve {
		curve = append(curve, digits(p.Median))
	}
	return append(out, object{
		optional("baseline", c.Baseline),
		optional("bound_broken", m.Breached(c)),
		optional("comparison", comparison(c.Comparison, m.Metric)),
		overhead,
		optional("median_by_place", curve),
		optional("trend", trend(c.Trend)),
		optional("worst_case", worst(c.Worst)),
		optional("warnings", warnings(s)),
	}...)
}

// trend is the trend of a series, nil without one.
func trend(t *stats.Trend) object {
	if t == nil {
		return nil
	}
	var knee object
	if k := t.Knee; k != nil {
		knee = object{
			{"at", number(k.At)}, {"interval", interval(&k.Range)}, {"slope_before", number(k.Before)}, {"slope_after", number(k.After)}, {"p", number(k.P)},
		}
	}
	return object{{"places", t.N}, {"slope", number(t.Slope)}, {"interval", interval(t.CI)}, {"intercept", number(t.Intercept)}, optional("knee", knee)}
}

// worst is the worst case of a time, nil without one.
func worst(w *analysis.Worst) object {
	if w == nil {
		return nil
	}
	out := object{{"samples", w.N}, {"max", number(w.Max)}}
	if w.Refusal != nil {
		return append(out, member{"refusal", refusal(w.Refusal)})
	}
	m := w.Model
	return append(out, object{
		{"bounds", each(w.Bounds, func(b *tail.Bound) object {
			return object{{"probability", b.P}, {"value", number(b.Value)}, {"interval", interval(&b.CI)}}
		})},
		{"threshold", number(m.Threshold)},
		{"exceedances", m.Exceedances},
		{"clusters", m.Clusters},
		{"extremal_index", number(m.ExtremalIndex)},
		{"scale", number(m.GPD.Scale)},
		{"shape", number(m.GPD.Shape)},
		{"shape_interval", interval(&m.ShapeCI)},
		{"variation", number(m.Variation.CV)},
		{"weight", m.Variation.Weight()},
		optional("rarer_refusal", refusal(w.Rarer)),
	}...)
}

// refusal is the reason without a bound, nil for nil.
func refusal(r *tail.Refusal) object {
	if r == nil {
		return nil
	}
	return object{{"test", r.Test}, {"reason", r.Reason}, {"advice", r.Advice}, optional("samples_needed", r.Samples)}
}

func warnings(s *stats.Summary) []object {
	if s == nil {
		return nil
	}
	return each(s.Warnings, func(w *stats.Warning) object {
		return object{{"kind", w.Kind}, {"message", w.Message}, {"advice", w.Advice}}
	})
}

// comparison is nil for a nil comparison. Its verdict has the spelling of package stats. Its word is for people and depends on
// the metric.
func comparison(k *stats.Comparison, m result.Metric) object {
	if k == nil {
		return nil
	}
	return object{
		{"pairs", k.N},
		{"ratio", number(k.Ratio)},
		{"interval", interval(k.CI)},
		{"p", number(k.P)},
		{"adjusted_p", number(k.Adjusted)},
		{"verdict", k.Verdict},
		{"word", quantity.VerdictWord(k.Verdict, m)},
		{"detectable", number(k.Detectable)},
		optional("scope", scope(k)),
		optional("deciding_part", k.By),
		{"means_ratio", number(k.Means)},
		{"means_interval", interval(k.MeansCI)},
		optional("parts", each(k.Parts, part)),
		optional("shift_function", numbers(k.Shift)),
		optional("dependent", k.Dependent),
		optional("lost_share", digits(k.Lost.Other)),
		optional("baseline_lost_share", digits(k.Lost.Baseline)),
	}
}

// scope is how far a difference holds: in the report (over all comparisons of the run), or in its metric alone. It is empty
// without a difference.
func scope(k *stats.Comparison) string {
	switch {
	case !k.Differs():
		return ""
	case k.Everywhere:
		return "report"
	}
	return "metric"
}

func part(d *stats.PartDifference) object {
	return object{{"part", d.Part}, {"ratio", number(d.Ratio)}, {"p", number(d.P)}, {"adjusted_p", number(d.Adjusted)}}
}

// factRow has a value for each run. An unknown value is empty.
func factRow(f *fact.Row) object {
	return object{{"name", f.Name()}, {"values", f.Values}, {"differs", f.Differs}}
}

// jointBenchmark is a benchmark of several runs. Its baseline is absent if the runs have none in common; they then have their
// own.
func jointBenchmark(pointer **analysis.Benchmark) object {
	b := *pointer
	runs := []object{}
	for i, s := range b.Sections {
		if s != nil {
			runs = append(runs, object{{"run", i}, optional("baseline", s.Baseline), {"blocks", s.Blocks}})
		}
	}
	return object{
		{"name", b.Name},
		optional("params", b.Params),
		optional("source", b.Source),
		optional("baseline", b.Baseline),
		optional("note", b.Note),
		optional("conditions", each(b.Conditions, factRow)),
		{"runs", runs},
		{"metrics", each(b.Metrics, jointMetric)},
	}
}

func jointMetric(m *analysis.Metric) object {
	rows := []object{}
	for _, r := range m.Rows {
		if !r.Has() {
			continue
		}
		var cells []object
		for i := range r.Cells {
			cells = append(cells, jointCell(i, &r.Cells[i], m.Metric))
		}
		rows = append(rows, object{{"target", r.Target}, {"runs", cells}})
	}
	return object{
		{"name", m.Name},
		{"unit", m.Unit},
		{"better", m.Better},
		optional("derived_from", m.DerivedFrom), // a derived metric has no comparison
		{"targets", rows},
	}
}

// jointCell is a metric on a target in a run. The reason explains a missing median.
func jointCell(run int, c *analysis.Cell, m result.Metric) object {
	out := append(object{{"run", run}, optional("reason", c.Reason)}, estimate(c.Summary)...)
	var ratio object // the typical ratio to the first run, without a verdict
	if c.Across != nil {
		ratio = object{{"ratio", number(c.Across.Ratio)}, {"interval", interval(c.Across.CI)}}
	}
	return append(out, object{
		optional("baseline", c.Baseline),
		optional("comparison", comparison(c.Comparison, m)),
		optional("to_first_run", ratio),
		optional("warnings", warnings(c.Summary)),
	}...)
}

func coverage(c *analysis.Coverage) object {
	var runs []object
	for i, item := range c.Cells {
		runs = append(runs, object{
			{"run", i},
			{"targets", list(item.Targets)},
			optional("lacking", item.Lacking),
			{"blocks", item.Blocks},
			optional("reason", item.Reason),
		})
	}
	return object{{"benchmark", c.Name}, optional("params", c.Params), {"runs", runs}, {"differs", c.Differs}}
}
