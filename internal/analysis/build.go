package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// New analyses at least one run. Runs may be in any state and without trials. Each run has the numbers of its
// own analysis, because the bootstraps have the run's own seed.
func New(runs []result.Run, opts Options) *Analysis {
	sorted, machines := byMachine(runs)
	a := &Analysis{Machines: machines, Facts: fact.Hosts(sorted), Versions: fact.Versions(sorted), AcrossMachines: opts.AcrossMachines, EmulatedVerdicts: opts.EmulatedVerdicts, MinEffect: opts.MinEffect}
	baselines, separate := commonBaselines(sorted)
	names := labels(sorted)
	var work [][]builder
	for i := range sorted {
		a.Runs = append(a.Runs, newRun(&sorted[i], names[i]))
		work = append(work, builders(&sorted[i], baselines))
		a.Runs[i].Unjudged = sorted[i].Host.MayBeEmulated() && !opts.EmulatedVerdicts
		for n := range work[i] {
			work[i][n].configure(&a.Runs[i], opts)
		}
	}
	for i, m := range machines {
		for _, run := range m.Runs {
			a.Runs[run].Machine = i
		}
	}
	for i := range work {
		for n := range work[i] {
			a.add(i, &work[i][n], opts.Release)
		}
		a.judgeTogether(i)
	}
	for _, b := range a.Benchmarks() {
		a.finish(b, separate[b.Key])
	}
	a.cover(work)
	for i := range a.Runs {
		a.Runs[i].Disturbances = disturbances(sorted[i].Trials)
		a.Runs[i].CarryOvers = a.carryOvers(i, sorted[i].Trials)
		a.Runs[i].Scorecard = a.scorecard(i)
	}
	return a
}

func newRun(run *result.Run, label string) Run {
	r := Run{Run: *run, Label: label, Counts: map[result.Status]int{}, rule: ruleOf(run)}
	r.Trials, r.Run.Targets, r.Bench = nil, nil, nil
	var self, elapsed time.Duration
	total, ok := map[string]int{}, map[string]int{} // by target
	for i := range run.Trials {
		t := &run.Trials[i]
		self, elapsed = self+t.Self, elapsed+t.Elapsed
		if t.Warmup {
			r.Warmup++
			continue
		}
		r.Counts[t.Status]++
		total[t.Target]++
		if t.Status == result.OK {
			ok[t.Target]++
		}
	}
	r.FailedCalls = failedCalls(run)
	if elapsed > 0 {
		r.Self = self.Seconds() / elapsed.Seconds()
	}
	for _, t := range run.Targets {
		r.Targets = append(r.Targets, Target{Target: t, Total: total[t.Name], OK: ok[t.Name]})
	}
	return r
}

// add adds the benchmark of one run to its place. Suites and benchmarks are in the order of their first run.
func (a *Analysis) add(run int, builder *builder, release bool) {
	a.Runs[run].Missing = append(a.Runs[run].Missing, builder.missing()...)
	section := builder.section()
	builder.fit(section.Targets)
	if release {
		builder.release(section.Targets)
	}
	if section.skipped() {
		a.Runs[run].leaveOut(builder.key.Title(), section)
		return
	}
	name, _, _ := strings.Cut(builder.key.Name, ".")
	suite := lists.Place(&a.Suites, func(s *Suite) bool { return s.Name == name }, Suite{Name: name})
	b := lists.Place(&suite.Benchmarks, func(b *Benchmark) bool { return b.Key == builder.key }, builder.benchmark(len(a.Runs)))
	b.Sections[run] = section
	sum := builder.metrics(run, b, section)
	a.Runs[run].Families += sum.families
	a.Runs[run].Comparisons += sum.comparisons
	a.Runs[run].Withheld += sum.withheld
	section.Breaches = b.breaches(run)
}

// finish fills in the parts of a benchmark that need all its runs.
func (a *Analysis) finish(b *Benchmark, separate bool) {
	a.baseline(b, separate)
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for n := range m.Rows {
			row := &m.Rows[n]
			row.Baseline = row.Target == b.Baseline
			for run := range row.Cells {
				if c := &row.Cells[run]; c.Summary == nil {
					c.Lack, c.Reason = a.lack(b, row, run)
				}
			}
			a.across(m, row)
		}
	}
	b.Conditions = b.conditions()
}

// baseline sets the target of all ratios.
func (a *Analysis) baseline(b *Benchmark, separate bool) {
	baselines := fact.Row{Values: make([]string, len(b.Sections))}
	for i, s := range b.Sections {
		if s == nil || s.Baseline == "" {
			continue
		}
		baselines.Values[i] = s.Baseline
		if b.Baseline == "" {
			b.Baseline = s.Baseline
		}
		if b.Note == "" {
			b.Note = s.BaselineNote
		}
	}
	if !separate {
		return
	}
	var parts []string
	for _, g := range baselines.Groups() {
		if g.Value != "" {
			parts = append(parts, g.Value+" on "+a.Labels(g.Runs))
		}
	}
	b.Baseline = ""
	b.Note = "no target has a value in all runs, so the ratios are to different targets and must not be compared: " + strings.Join(parts, "; ")
}

// lack gives the reason why a cell has no number.
func (a *Analysis) lack(b *Benchmark, row *Row, run int) (brief, full string) {
	r := &a.Runs[run]
	index := slices.IndexFunc(r.Targets, func(t Target) bool { return t.Name == row.Target })
	switch section := b.Sections[run]; {
	case index < 0:
		return "not run", "the run has no such target"
	case section == nil:
		return "not run", r.Without(b.Title())
	case section.outcome(row.Target) == nil:
		return "not available", r.Targets[index].Unavailable
	default:
		o := section.outcome(row.Target)
		switch {
		case row.Cells[run].Absent, o.OK > 0:
			return "not recorded", "not recorded on this target"
		default:
			return o.worst(), o.Why()
		}
	}
}

// Without gives the reason why a run has no section of a benchmark.
func (r *Run) Without(title string) string {
	for _, u := range r.Unmeasured {
		if !slices.Contains(u.Benchmarks, title) {
			continue
		}
		var parts []string
		for _, reason := range u.Reasons {
			parts = append(parts, reason.String())
		}
		return "skipped: " + strings.Join(parts, "; ")
	}
	return "not in this run"
}

// across compares the values of a row between the first run and each other run.
func (a *Analysis) across(m *Metric, row *Row) {
	if !a.AcrossMachines || row.Cells[0].Summary == nil {
		return
	}
	reference := valuesOf(row.Cells[0].Points)
	for i := 1; i < len(row.Cells); i++ {
		if c := &row.Cells[i]; c.Summary != nil {
			comparison := stats.CompareUnpaired(reference, valuesOf(c.Points), stats.Direction(m.Better))
			if row.Cells[0].Emulated || c.Emulated {
				comparison = comparison.Withhold()
			}
			c.Across = &comparison
		}
	}
}

// builder makes the section of one benchmark in one run.
type builder struct {
	run       *result.Run
	key       Key
	described result.Benchmark
	cells     map[result.Cell][]*result.Trial
	// counted are the trials that count, values and curves the values of each metric in them, all by target. They are filled when they are
	// needed.
	counted map[string][]*result.Trial
	values  map[string]map[string][]Point
	curves  map[string]map[string][]Place
	worsts  map[[2]string]*Worst // by target and metric
	// wanted is the baseline if it has numbers, common the one that several runs have in common, if it is another one.
	wanted, common string
	// item restricts a series to one value; nil for none.
	item *Item
	// unjudged is set if verdicts about speed are withheld.
	unjudged bool
	margin   float64 // Options.MinEffect
	rule     rule
}

// builders are the builders of a run in the order of its benchmarks. The order of the trials is shuffled and decides only
// the order of parameters. A benchmark without a description has no builder, because its values have no unit.
func builders(run *result.Run, baselines map[Key]string) []builder {
	cells := map[result.Cell][]*result.Trial{}
	var list []builder
	place := map[string]int{}
	for i, b := range run.Bench {
		place[b.Name] = i
	}
	keys := map[Key]bool{}
	for i := range run.Trials {
		t := &run.Trials[i]
		cells[t.Cell] = append(cells[t.Cell], t)
		k := Key{t.Benchmark, t.Params}
		if index, ok := place[t.Benchmark]; ok && !keys[k] {
			keys[k] = true
			list = append(list, builder{
				run: run, key: k, described: run.Bench[index], cells: cells, wanted: run.Baseline, common: baselines[k],
				counted: map[string][]*result.Trial{}, values: map[string]map[string][]Point{}, curves: map[string]map[string][]Place{}, worsts: map[[2]string]*Worst{},
			})
		}
	}
	slices.SortStableFunc(list, func(a, b builder) int { return cmp.Compare(place[a.key.Name], place[b.key.Name]) })
	return list
}

// configure sets the rules of the run and of the options.
func (b *builder) configure(run *Run, o Options) {
	b.unjudged, b.margin, b.rule = run.Unjudged, o.MinEffect, run.rule
}

// benchmark is the benchmark without its sections and metrics.
func (b *builder) benchmark(runs int) Benchmark {
	return Benchmark{
		Key: b.key, Summary: b.described.Summary, Source: b.described.Source, Place: b.described.Place, Sections: make([]*Section, runs),
	}
}

func (b *builder) trials(target string) []*result.Trial {
	return b.cells[result.Cell{Benchmark: b.key.Name, Params: b.key.Params, Target: target}]
}

// valid gives the trials that count.
func (b *builder) valid(target string) []*result.Trial {
	valid, ok := b.counted[target]
	if !ok {
		valid = lists.Filter(b.trials(target), func(t *result.Trial) bool { return t.Status == result.OK && !t.Warmup })
		b.counted[target] = valid
	}
	return valid
}

// points gives the values of a metric on a target, see pointsOf.
func (b *builder) points(target, metric string) []Point {
	if b.values[target] == nil {
		b.values[target] = pointsOf(b.valid(target), b.described.Metrics)
		if b.item != nil {
			b.values[target][b.item.Metric] = pointsAt(b.valid(target), *b.item)
		}
	}
	return b.values[target][metric]
}

// curve gives a series on a target by place.
func (b *builder) curve(target, metric string) []Place {
	places, ok := b.curves[target][metric]
	if !ok {
		places = curve(b.valid(target), metric)
		if b.curves[target] == nil {
			b.curves[target] = map[string][]Place{}
		}
		b.curves[target][metric] = places
	}
	return places
}

// fit fits the worst cases of all metrics on all targets.
func (b *builder) fit(targets []Outcome) {
	trials := make([][]*result.Trial, len(targets))
	for i, o := range targets {
		trials[i] = b.valid(o.Target)
	}
	metrics := b.described.Metrics
	worsts := make([]*Worst, len(targets)*len(metrics))
	concurrently(len(targets), func(i int) {
		samples := allSamples(trials[i], metrics)
		for n, m := range metrics {
			worsts[i*len(metrics)+n] = worst(trials[i], samples[n], m, &targets[i])
		}
	})
	for i, w := range worsts {
		b.worsts[[2]string{targets[i/len(metrics)].Target, metrics[i%len(metrics)].Name}] = w
	}
}

// release reads all values that metrics needs, and drops the samples of the benchmark.
func (b *builder) release(targets []Outcome) {
	for _, o := range targets {
		for _, m := range b.described.Metrics {
			b.points(o.Target, m.Name)
			if m.Series && m.Group == "" {
				b.curve(o.Target, m.Name)
			}
		}
	}
	for _, t := range b.run.Targets {
		for _, trial := range b.trials(t.Name) {
			trial.Samples = nil
		}
	}
}

// samples gives the values of a metric by target.
func (b *builder) samples(targets []Outcome, metric result.Metric) map[string][]stats.Sample {
	samplesByTarget := map[string][]stats.Sample{}
	for _, o := range targets {
		if samples := samplesOf(b.points(o.Target, metric.Name)); len(samples) > 0 {
			samplesByTarget[o.Target] = samples
		}
	}
	return samplesByTarget
}

func (b *builder) section() *Section {
	s := b.compared()
	s.Layers = b.layers(s.Targets)
	s.Components = b.components(s.Targets)
	s.Timelines = b.timelines(s.Targets)
	s.Stated, s.Conditions = b.conditions(s.Targets)
	return s
}

// compared is the part of a section that comparisons need.
func (b *builder) compared() *Section {
	s := &Section{Targets: b.outcomes()}
	blocks := map[int]bool{}
	for _, o := range s.Targets {
		for _, trial := range b.valid(o.Target) {
			blocks[trial.Block] = true
		}
	}
	s.Blocks = len(blocks)
	s.rule = b.rule
	s.Baseline, s.BaselineNote = b.baseline(s.Targets)
	return s
}

// baseline is the wanted baseline if it has numbers, else the first target that has, or the one that several runs have in
// common.
func (b *builder) baseline(targets []Outcome) (name, note string) {
	ok := func(name string) bool {
		return slices.ContainsFunc(targets, func(o Outcome) bool { return o.Target == name && o.OK > 0 })
	}
	if b.common != "" && ok(b.common) {
		return b.common, "the runs of this report have no other baseline in common here"
	}
	if ok(b.wanted) {
		return b.wanted, ""
	}
	index := slices.IndexFunc(targets, func(o Outcome) bool { return o.OK > 0 })
	if index < 0 {
		return "", ""
	}
	name = targets[index].Target
	if b.wanted == "" {
		return name, ""
	}
	note = fmt.Sprintf("the run's baseline %s has no trial here that is ok", b.wanted)
	if i := slices.IndexFunc(targets, func(o Outcome) bool { return o.Target == b.wanted }); i >= 0 {
		note += " (" + targets[i].Why() + ")"
	}
	return name, note
}

// outcomes counts the trials on each target. Unavailable targets are left out, because the list of targets has them.
func (b *builder) outcomes() []Outcome {
	var outcomes []Outcome
	for _, t := range b.run.Targets {
		if len(b.trials(t.Name)) > 0 && (t.Unavailable == "" || len(b.valid(t.Name)) > 0) {
			outcomes = append(outcomes, b.outcome(t.Name))
		}
	}
	return outcomes
}

func (b *builder) outcome(target string) Outcome {
	o := Outcome{Target: target}
	for _, t := range b.trials(target) {
		if t.Warmup {
			o.Warmup++
			continue
		}
		if t.Status != result.Skipped {
			o.blocks = max(o.blocks, t.Block+1)
		}
		switch t.Status {
		case result.OK:
			o.OK++
			if len(t.Host.Marks) > 0 {
				o.Disturbed++
			}
		case result.Failed:
			o.Failed++
			o.lost = append(o.lost, t.Block)
		case result.Timeout:
			o.Timeout++
			o.lost = append(o.lost, t.Block)
		case result.Skipped:
			o.Skipped++
		}
		if t.Status != result.OK && o.Reason == "" {
			o.Reason = t.Why()
		}
	}
	if b.described.Phases {
		o.Phases = phases(b.valid(target))
	}
	if b.run.Stopping != nil {
		cell := result.Cell{Benchmark: b.key.Name, Params: b.key.Params, Target: target}
		o.stopped = slices.ContainsFunc(b.run.Stopping.Stopped, func(s result.Stop) bool { return s.Cell == cell })
	}
	if o.OK > 0 {
		untried := b.untried(target)
		o.lost = append(o.lost, untried...)
		o.Untried, o.Lost = len(untried), len(o.lost)
	}
	return o
}

// untried are the blocks that other targets measured after a target was given up or quarantined.
func (b *builder) untried(target string) []int {
	trials := b.trials(target)
	index := slices.IndexFunc(trials, func(t *result.Trial) bool { return t.Status == result.Skipped && !t.Warmup })
	if index < 0 {
		return nil
	}
	blocks := map[int]bool{}
	for _, peer := range b.run.Targets {
		for _, t := range b.valid(peer.Name) {
			if t.Block >= trials[index].Block {
				blocks[t.Block] = true
			}
		}
	}
	return slices.Collect(maps.Keys(blocks))
}

// missing lists the cells of the benchmark with trials that did not end well, on targets that were available.
func (b *builder) missing() []Missing {
	var gaps []Missing
	for _, target := range b.run.Targets {
		if target.Unavailable != "" && len(b.valid(target.Name)) == 0 {
			continue
		}
		total := 0
		var found []Missing
		for _, t := range b.trials(target.Name) {
			if t.Warmup {
				continue
			}
			total++
			if t.Status != result.OK {
				lists.Place(&found, func(m *Missing) bool { return m.Status == t.Status }, Missing{
					Key: b.key, Target: t.Target, Status: t.Status, Reason: t.Why(), Output: strings.TrimSpace(t.Output),
				}).Count++
			}
		}
		for _, s := range []result.Status{result.Failed, result.Timeout, result.Skipped} {
			for _, miss := range found {
				if miss.Status == s {
					miss.Total = total
					gaps = append(gaps, miss)
				}
			}
		}
	}
	return gaps
}

// phases gives the median duration of each phase with its steps, in the order of their first occurrence. A step without
// its phase is a phase of its own.
func phases(trials []*result.Trial) []Phase {
	var names []string
	place := map[string]int{}                 // in names and in the lists below
	var durations, medians, times [][]float64 // durations are of the current trial
	for _, t := range trials {
		for _, p := range t.Phases {
			i, ok := place[p.Name]
			if !ok {
				i = len(names)
				place[p.Name] = i
				names = append(names, p.Name)
				durations, medians, times = append(durations, nil), append(medians, nil), append(times, nil)
			}
			durations[i] = append(durations[i], p.Duration.Seconds())
		}
		for i, d := range durations {
			if len(d) > 0 {
				medians[i] = append(medians[i], stats.Median(d))
				times[i] = append(times[i], float64(len(d)))
				durations[i] = d[:0]
			}
		}
	}
	var phases []Phase
	steps := map[string][]Phase{}
	for i, name := range names {
		phase := Phase{Name: name, Seconds: stats.Median(medians[i]), Times: int(stats.Median(times[i]))}
		parent, step, isStep := strings.Cut(name, "/")
		if isStep && slices.Contains(names, parent) {
			phase.Name = step
			steps[parent] = append(steps[parent], phase)
		} else {
			phases = append(phases, phase)
		}
	}
	for i := range phases {
		phases[i].Steps = steps[phases[i].Name]
	}
	return phases
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
