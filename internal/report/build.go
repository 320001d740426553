package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// key is what a table of the report is about.
type key struct{ benchmark, params string }

// New makes the model of a run. The run may be of any state, also without trials.
func New(run result.Run, opts Options) Model {
	m := Model{Run: facts(run), Seed: opts.Seed}
	for _, t := range run.Targets {
		m.Targets = append(m.Targets, targetOf(t, run.Trials))
	}
	for _, build := range builders(&run, opts) {
		m.Missing = append(m.Missing, build.missing()...)
		if b := build.benchmark(); b.untried() {
			m.leaveOut(b)
		} else {
			m.add(b)
		}
	}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			m.Families += families(b)
		}
	}
	m.Warnings = warnings(&m, run.Trials)
	m.Findings = findings(&m)
	return m
}

// add puts a benchmark into its suite. Suites stand in the order of their first benchmark.
func (m *Model) add(b Benchmark) {
	name, _, _ := strings.Cut(b.Name, ".")
	at := slices.IndexFunc(m.Suites, func(s Suite) bool { return s.Name == name })
	if at < 0 {
		m.Suites = append(m.Suites, Suite{Name: name})
		at = len(m.Suites) - 1
	}
	m.Suites[at].Benchmarks = append(m.Suites[at].Benchmarks, b)
}

func facts(run result.Run) Run {
	r := Run{Run: run, Counts: map[result.Status]int{}}
	r.Trials, r.Targets, r.Bench = nil, nil, nil
	var self, elapsed time.Duration
	for _, t := range run.Trials {
		self, elapsed = self+t.Self, elapsed+t.Elapsed
		if t.Warmup {
			r.Warmup++
		} else {
			r.Counts[t.Status]++
		}
	}
	if elapsed > 0 {
		r.Self = self.Seconds() / elapsed.Seconds()
	}
	return r
}

func targetOf(t result.Target, trials []result.Trial) Target {
	target := Target{Target: t}
	for _, trial := range trials {
		if trial.Target != t.Name || trial.Warmup {
			continue
		}
		target.Total++
		if trial.Status == result.OK {
			target.OK++
		}
	}
	return target
}

// builder makes one benchmark of the model.
type builder struct {
	run       *result.Run
	key       key
	described result.Benchmark
	cells     map[result.Cell][]*result.Trial
	seed      uint64
	// common is the baseline that is wanted in place of the run's, empty if none is.
	common string
}

// builders gives one for each benchmark of a run: in the order of the run's benchmarks, whatever came first in the
// shuffled run; the parameters of one benchmark as they came. A benchmark that the run does not describe has
// none: no value of it could be read.
func builders(run *result.Run, opts Options) []builder {
	cells := map[result.Cell][]*result.Trial{}
	var all []builder
	place := map[string]int{}
	for i, b := range run.Bench {
		place[b.Name] = i
	}
	known := map[key]bool{}
	for i := range run.Trials {
		t := &run.Trials[i]
		cells[t.Cell] = append(cells[t.Cell], t)
		k := key{t.Benchmark, t.Params}
		if at, described := place[t.Benchmark]; described && !known[k] {
			known[k] = true
			all = append(all, builder{run: run, key: k, described: run.Bench[at], cells: cells, seed: opts.Seed, common: opts.baselines[k]})
		}
	}
	slices.SortStableFunc(all, func(a, b builder) int { return cmp.Compare(place[a.key.benchmark], place[b.key.benchmark]) })
	return all
}

func (b *builder) trials(target string) []*result.Trial {
	return b.cells[result.Cell{Benchmark: b.key.benchmark, Params: b.key.params, Target: target}]
}

// valid gives the trials that count.
func (b *builder) valid(target string) []*result.Trial {
	var ok []*result.Trial
	for _, t := range b.trials(target) {
		if t.Status == result.OK && !t.Warmup {
			ok = append(ok, t)
		}
	}
	return ok
}

// outcomes tells how the trials on each target ended, but for those that could not run at all: they are listed
// once, with the targets.
func (b *builder) outcomes() []Outcome {
	var all []Outcome
	for _, t := range b.run.Targets {
		if len(b.trials(t.Name)) > 0 && (t.Unavailable == "" || len(b.valid(t.Name)) > 0) {
			all = append(all, b.outcome(t.Name))
		}
	}
	return all
}

func (b *builder) benchmark() Benchmark {
	described := b.described
	out := Benchmark{Name: b.key.benchmark, Params: b.key.params, Summary: described.Summary, Source: described.Source, Targets: b.outcomes()}
	blocks := map[int]bool{}
	for _, o := range out.Targets {
		for _, trial := range b.valid(o.Target) {
			blocks[trial.Block] = true
		}
	}
	out.Blocks = len(blocks)
	out.Baseline, out.BaselineNote = b.baseline(out.Targets)
	for _, m := range described.Metrics {
		if isComponent(m.Name) {
			continue
		}
		metric := b.metric(m, &out)
		switch {
		case !slices.ContainsFunc(metric.Cells, func(c Cell) bool { return c.Summary != nil }):
			if !m.Optional {
				out.Unrecorded = append(out.Unrecorded, m.Name)
			}
			continue
		case !slices.ContainsFunc(metric.Cells, func(c Cell) bool { return c.Baseline }):
			out.Unbased = append(out.Unbased, m.Name)
		}
		out.Metrics = append(out.Metrics, metric)
	}
	out.Layers = b.layers(&out)
	out.Components = b.components(described.Metrics, &out)
	out.Conditions = b.conditions(out.Targets)
	out.Breaches = breaches(&out)
	return out
}

// baseline is the run's baseline if it has numbers, else the first target that has; or the one that several runs
// have in common.
func (b *builder) baseline(targets []Outcome) (name, note string) {
	if b.common != "" && slices.ContainsFunc(targets, func(o Outcome) bool { return o.Target == b.common && o.OK > 0 }) {
		return b.common, "the runs of this report have no other baseline in common here"
	}
	at := slices.IndexFunc(targets, func(o Outcome) bool { return o.Target == b.run.Baseline && o.OK > 0 })
	if at >= 0 {
		return b.run.Baseline, ""
	}
	at = slices.IndexFunc(targets, func(o Outcome) bool { return o.OK > 0 })
	if at < 0 {
		return "", ""
	}
	name = targets[at].Target
	if b.run.Baseline == "" {
		return name, ""
	}
	note = fmt.Sprintf("the run's baseline %s has no trial here that is ok", b.run.Baseline)
	if i := slices.IndexFunc(targets, func(o Outcome) bool { return o.Target == b.run.Baseline }); i >= 0 {
		note += " (" + targets[i].Why() + ")"
	}
	return name, note
}

func (b *builder) outcome(target string) Outcome {
	o := Outcome{Target: target}
	for _, t := range b.trials(target) {
		if t.Warmup {
			o.Warmup++
			continue
		}
		switch t.Status {
		case result.OK:
			o.OK++
			if len(t.Host.Marks) > 0 {
				o.Disturbed++
			}
		case result.Failed:
			o.Failed++
		case result.Timeout:
			o.Timeout++
		case result.Skipped:
			o.Skipped++
		}
		if t.Status != result.OK && o.Reason == "" {
			o.Reason = t.Reason
		}
	}
	if strings.HasPrefix(b.key.benchmark, "operations.") {
		o.Phases = phases(b.valid(target))
	}
	return o
}

// Total counts the trials without warm-up.
func (o *Outcome) Total() int { return o.OK + o.Failed + o.Timeout + o.Skipped }

// Counts says how the trials ended: "10 ok", "8 ok, 2 failed".
func (o *Outcome) Counts() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{o.OK, "ok"}, {o.Failed, "failed"}, {o.Timeout, "timed out"}, {o.Skipped, "skipped"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(parts) == 0 {
		return "warm-up only"
	}
	return strings.Join(parts, ", ")
}

// Why says why a target has no number or not all: "skipped: the reason",
// "failed 2 of 10: the reason of the first". It is empty if all trials were ok.
func (o *Outcome) Why() string {
	var what string
	switch {
	case o.Failed > 0:
		what = fmt.Sprintf("failed %d of %d", o.Failed+o.Timeout, o.Total())
	case o.Timeout > 0:
		what = fmt.Sprintf("timed out %d of %d", o.Timeout, o.Total())
	case o.Skipped > 0:
		what = "skipped"
	case o.Total() == 0:
		return "warm-up only"
	default:
		return ""
	}
	if o.Reason == "" {
		return what
	}
	return what + ": " + o.Reason
}

// Lack says in a word or two why a target has no value of a metric.
func (o *Outcome) Lack() string {
	switch {
	case o.OK > 0:
		return "not recorded"
	case o.Failed > 0:
		return "failed"
	case o.Timeout > 0:
		return "timed out"
	case o.Skipped > 0:
		return "skipped"
	}
	return "warm-up only"
}

// missing lists the cells of a benchmark that lack something, also on targets that could
// not run at all.
func (b *builder) missing() []Missing {
	var all []Missing
	for _, target := range b.run.Targets {
		if target.Unavailable != "" && len(b.valid(target.Name)) == 0 {
			continue
		}
		first := map[result.Status]*Missing{}
		total := 0
		for _, t := range b.trials(target.Name) {
			if t.Warmup {
				continue
			}
			total++
			if t.Status == result.OK {
				continue
			}
			if first[t.Status] == nil {
				first[t.Status] = &Missing{
					Benchmark: t.Benchmark, Params: t.Params, Target: t.Target,
					Status: t.Status, Reason: t.Reason, Output: t.Output,
				}
			}
			first[t.Status].Count++
		}
		for _, s := range []result.Status{result.Failed, result.Timeout, result.Skipped} {
			if miss := first[s]; miss != nil {
				miss.Total = total
				all = append(all, *miss)
			}
		}
	}
	return all
}

// phases gives the median duration of each phase in the order in which phases first happen, with
// its steps. A step of a phase that is not there stands as a phase of its own.
func phases(trials []*result.Trial) []Phase {
	var names []string
	medians := map[string][]float64{}
	times := map[string][]float64{}
	for _, t := range trials {
		durations := map[string][]float64{}
		for _, p := range t.Phases {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
			durations[p.Name] = append(durations[p.Name], p.Duration.Seconds())
		}
		for name, d := range durations {
			medians[name] = append(medians[name], median(d))
			times[name] = append(times[name], float64(len(d)))
		}
	}
	var all []Phase
	steps := map[string][]Phase{}
	for _, name := range names {
		phase := Phase{Name: name, Seconds: median(medians[name]), Times: int(median(times[name]))}
		whole, step, isStep := strings.Cut(name, "/")
		if isStep && slices.Contains(names, whole) {
			phase.Name = step
			steps[whole] = append(steps[whole], phase)
		} else {
			all = append(all, phase)
		}
	}
	for i := range all {
		all[i].Steps = steps[all[i].Name]
	}
	return all
}

// median is the median of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	lo, hi := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return lo + (hi-lo)/2
}

// families counts the metrics with a comparison that was judged.
func families(b Benchmark) int {
	var n int
	for _, m := range b.Metrics {
		if slices.ContainsFunc(m.Cells, func(c Cell) bool { return c.Comparison != nil && judged(*c.Comparison) }) {
			n++
		}
	}
	return n
}

// judged tells whether there were enough samples for a verdict on them.
func judged(c stats.Comparison) bool {
	switch c.Verdict {
	case stats.Faster, stats.Slower, stats.NoDifference, stats.TooNoisy:
		return true
	case stats.TooFew, stats.NotComparable:
		return false
	}
	return false
}
