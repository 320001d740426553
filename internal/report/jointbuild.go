package report

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// NewJoint makes the model of a report of several runs, at least one. Each run has the numbers that its own report
// has, from its own seed.
func NewJoint(runs []result.Run, opts JointOptions) Joint {
	sorted, machines := byMachine(runs)
	names := labels(sorted)
	j := Joint{Machines: machines, Facts: jointFacts(sorted), Versions: jointVersions(sorted), AcrossMachines: opts.AcrossMachines}
	baselines, noted := commonBaselines(sorted)
	for i, r := range sorted {
		j.Runs = append(j.Runs, JointRun{Model: New(r, Options{Seed: r.Seed, baselines: baselines}), Label: names[i]})
	}
	for i, m := range machines {
		for _, at := range m.Runs {
			j.Runs[at].Machine = i
		}
	}
	for i := range j.Runs {
		j.Families += j.Runs[i].Families
	}
	b := jointBuilder{joint: &j, runs: sorted}
	b.benchmarks(noted)
	b.coverage()
	j.Findings = jointFindings(&j)
	return j
}

// commonBaselines gives a baseline for each benchmark of which the runs have different ones: the first target of the first
// run that all of them have. Where there is none, the key is in apart.
func commonBaselines(runs []result.Run) (common map[key]string, apart map[key]bool) {
	common, apart = map[key]string{}, map[key]bool{}
	outcomes := map[key][][]Outcome{}
	baselines := map[key][]string{}
	for i := range runs {
		for _, b := range builders(&runs[i], Options{}) {
			targets := b.outcomes()
			if name, _ := b.baseline(targets); name != "" {
				outcomes[b.key] = append(outcomes[b.key], targets)
				baselines[b.key] = append(baselines[b.key], name)
			}
		}
	}
	for k, names := range baselines {
		if !slices.ContainsFunc(names, func(name string) bool { return name != names[0] }) {
			continue
		}
		apart[k] = true
		for _, candidate := range outcomes[k][0] {
			everywhere := !slices.ContainsFunc(outcomes[k], func(of []Outcome) bool {
				return !slices.ContainsFunc(of, func(o Outcome) bool { return o.Target == candidate.Target && o.OK > 0 })
			})
			if everywhere {
				common[k] = candidate.Target
				delete(apart, k)
				break
			}
		}
	}
	return common, apart
}

// jointBuilder puts the models of runs beside each other.
type jointBuilder struct {
	joint *Joint
	runs  []result.Run
}

// benchmarks lines up the benchmarks of all runs, in the order in which they first come.
func (b *jointBuilder) benchmarks(apart map[key]bool) {
	j := b.joint
	for i := range j.Runs {
		for _, s := range j.Runs[i].Suites {
			at := slices.IndexFunc(j.Suites, func(known JointSuite) bool { return known.Name == s.Name })
			if at < 0 {
				j.Suites, at = append(j.Suites, JointSuite{Name: s.Name}), len(j.Suites)
			}
			suite := &j.Suites[at]
			for n := range s.Benchmarks {
				of := &s.Benchmarks[n]
				place := slices.IndexFunc(suite.Benchmarks, func(known JointBenchmark) bool { return known.Name == of.Name && known.Params == of.Params })
				if place < 0 {
					suite.Benchmarks, place = append(suite.Benchmarks, JointBenchmark{
						Name: of.Name, Params: of.Params, Summary: of.Summary, Source: of.Source, Runs: make([]*Benchmark, len(j.Runs)),
					}), len(suite.Benchmarks)
				}
				suite.Benchmarks[place].Runs[i] = of
			}
		}
	}
	for i := range j.Suites {
		for n := range j.Suites[i].Benchmarks {
			of := &j.Suites[i].Benchmarks[n]
			b.baseline(of, apart[key{of.Name, of.Params}])
			b.metrics(of)
			of.Conditions = b.conditions(of)
		}
	}
}

// baseline says what the ratios of a benchmark are to.
func (b *jointBuilder) baseline(of *JointBenchmark, apart bool) {
	var to []FactGroup
	for i, run := range of.Runs {
		if run == nil || run.Baseline == "" {
			continue
		}
		at := slices.IndexFunc(to, func(g FactGroup) bool { return g.Value == run.Baseline })
		if at < 0 {
			to, at = append(to, FactGroup{Value: run.Baseline}), len(to)
		}
		to[at].Runs = append(to[at].Runs, i)
		if of.Note == "" {
			of.Note = run.BaselineNote
		}
	}
	switch {
	case apart:
		var parts []string
		for _, g := range to {
			parts = append(parts, g.Value+" on "+b.joint.Labels(g.Runs))
		}
		of.Note = "ratios here are to different targets, for no target has a value in all runs: " + strings.Join(parts, "; ") + ". Do not set them beside each other"
	case len(to) > 0:
		of.Baseline = to[0].Value
	}
}

// metrics lines up the metrics of a benchmark, and its targets, in the order in which they first come.
func (b *jointBuilder) metrics(of *JointBenchmark) {
	var targets []string
	for _, run := range of.Runs {
		if run == nil {
			continue
		}
		for _, o := range run.Targets {
			if !slices.Contains(targets, o.Target) {
				targets = append(targets, o.Target)
			}
		}
		for _, m := range run.Metrics {
			if b.metric(of, &m.Metric) == nil {
				of.Metrics = append(of.Metrics, JointMetric{Metric: m.Metric})
			}
		}
	}
	for i := range of.Metrics {
		m := &of.Metrics[i]
		for _, target := range targets {
			row := JointRow{Target: target, Baseline: target == of.Baseline}
			for run := range of.Runs {
				row.Cells = append(row.Cells, b.cell(of, m, target, run))
			}
			if slices.ContainsFunc(row.Cells, func(c JointCell) bool { return c.Has() }) {
				b.across(m, &row)
				m.Rows = append(m.Rows, row)
			}
		}
		m.Unbased = !slices.ContainsFunc(m.Rows, func(r JointRow) bool {
			return slices.ContainsFunc(r.Cells, func(c JointCell) bool { return c.Has() && c.Baseline })
		})
	}
}

// metric finds a metric among those of a benchmark, nil if it is not there.
func (b *jointBuilder) metric(of *JointBenchmark, like *result.Metric) *JointMetric {
	at := slices.IndexFunc(of.Metrics, func(m JointMetric) bool { return sameMetric(&m.Metric, like) })
	if at < 0 {
		return nil
	}
	return &of.Metrics[at]
}

func sameMetric(a, b *result.Metric) bool {
	return a.Name == b.Name && a.Unit == b.Unit && a.Better == b.Better
}

// cell gives a metric on a target in a run, or why there is none.
func (b *jointBuilder) cell(of *JointBenchmark, m *JointMetric, target string, run int) JointCell {
	at := slices.IndexFunc(b.runs[run].Targets, func(t result.Target) bool { return t.Name == target })
	bench := of.Runs[run]
	switch {
	case at < 0:
		return JointCell{Lack: "not run", Why: "the run has no such target"}
	case bench == nil:
		return JointCell{Lack: "not run", Why: b.without(of.Name, of.Params, run)}
	}
	i := slices.IndexFunc(bench.Targets, func(o Outcome) bool { return o.Target == target })
	if i < 0 {
		return JointCell{Lack: "not available", Why: b.runs[run].Targets[at].Unavailable}
	}
	n := slices.IndexFunc(bench.Metrics, func(known Metric) bool { return sameMetric(&known.Metric, &m.Metric) })
	if n < 0 {
		return JointCell{Lack: bench.Targets[i].Lack(), Why: bench.Targets[i].Why()}
	}
	cell := &bench.Metrics[n].Cells[i]
	if cell.Summary != nil || cell.Absent {
		return JointCell{Cell: cell}
	}
	return JointCell{Cell: cell, Lack: bench.Targets[i].Lack(), Why: cell.Reason}
}

// without says why a run has no section for a benchmark.
func (b *jointBuilder) without(name, params string, run int) string {
	for _, u := range b.joint.Runs[run].Unmeasured {
		if !slices.Contains(u.Benchmarks, title(name, params)) {
			continue
		}
		var parts []string
		for _, r := range u.Reasons {
			text := r.Text
			if r.Targets != nil {
				text = strings.Join(r.Targets, ", ") + ": " + text
			}
			parts = append(parts, text)
		}
		return "skipped: " + strings.Join(parts, "; ")
	}
	return "not in this run"
}

// across compares the absolute medians of a row with that of the first run.
func (b *jointBuilder) across(m *JointMetric, row *JointRow) {
	if !b.joint.AcrossMachines || !row.Cells[0].Has() {
		return
	}
	reference := valuesOf(row.Cells[0].Points)
	for i := 1; i < len(row.Cells); i++ {
		if c := &row.Cells[i]; c.Has() {
			seed := b.runs[0].Seed ^ b.runs[i].Seed
			compared := stats.CompareUnpaired(reference, valuesOf(c.Points), stats.Direction(m.Better), seed)
			c.Across = &compared
		}
	}
}

// conditions are what a benchmark was measured under, those in which runs differ marked.
func (b *jointBuilder) conditions(of *JointBenchmark) []Fact {
	var all []Fact
	for i, run := range of.Runs {
		if run == nil {
			continue
		}
		for _, c := range run.Conditions {
			at := slices.IndexFunc(all, func(f Fact) bool { return f.Name == c.Name })
			if at < 0 {
				all, at = append(all, Fact{Name: c.Name, Values: make([]string, len(of.Runs))}), len(all)
			}
			all[at].Values[i] = strings.TrimPrefix(c.String(), c.Name+" ")
		}
	}
	for i := range all {
		f := &all[i]
		first := ""
		for run, v := range f.Values {
			switch {
			case of.Runs[run] == nil:
			case v == "":
				f.Values[run] = "not told"
				f.Differs = true
			case first == "":
				first = v
			case v != first:
				f.Differs = true
			}
		}
	}
	return all
}

// coverage lists what there is of each benchmark of any run in each run, also of those without a number.
func (b *jointBuilder) coverage() {
	j := b.joint
	var keys []key
	for i := range b.runs {
		for _, builder := range builders(&b.runs[i], Options{}) {
			if !slices.Contains(keys, builder.key) {
				keys = append(keys, builder.key)
			}
		}
	}
	for _, k := range keys {
		c := Coverage{Benchmark: k.benchmark, Params: k.params}
		for i := range j.Runs {
			c.Cells = append(c.Cells, b.covered(k, i))
		}
		c.Differs = slices.ContainsFunc(c.Cells, func(of Covered) bool {
			return of.Reason != c.Cells[0].Reason || of.Blocks != c.Cells[0].Blocks || !slices.Equal(of.Targets, c.Cells[0].Targets)
		})
		j.Coverage = append(j.Coverage, c)
	}
}

func (b *jointBuilder) covered(k key, run int) Covered {
	for _, s := range b.joint.Runs[run].Suites {
		for i := range s.Benchmarks {
			of := &s.Benchmarks[i]
			if of.Name != k.benchmark || of.Params != k.params {
				continue
			}
			c := Covered{Blocks: of.Blocks}
			for _, o := range of.Targets {
				if o.OK > 0 {
					c.Targets = append(c.Targets, o.Target)
				} else {
					c.Lacking = append(c.Lacking, o.Target)
				}
			}
			if len(c.Targets) == 0 {
				c.Reason = "no trial was ok"
			}
			return c
		}
	}
	return Covered{Reason: b.without(k.benchmark, k.params, run)}
}
