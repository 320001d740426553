// Package explain finds the causes of a difference between two targets of a run: the parts of a call's time that differ in the traced trials, and
// the counts that differ. It is the model of `touchstone explain`.
//
// # Numbers
//
//   - The difference of a phase comes from the untraced trials, by block, like each verdict of a report.
//   - A part of the time is a step, a component and a cause. Running time and the time outside are scaled to the untraced trials: by the untraced median of the
//     phase over its traced median without the time in run queues, and never up, because a tracer only slows down. Other load of the machine makes
//     run queues long in single traces, and must not shrink the other parts. A tracer does not lengthen waits for a clock, a disk or a CPU, which keep their length.
//   - A part is a cause if its ranges over the traces of the two targets do not overlap, and if its difference is [smallest] of the phase's
//     difference or more. With three traces a target, equal targets have such ranges in one of ten parts, so parts without a shown difference of the
//     phase are never causes.
//   - The rest of the difference stays unexplained. It is never spread over the causes.
//   - A count is shown if its ranges do not overlap, with and without the work between the calls. A count that is equal in all traces of a target needs no more evidence.
//
// # Refusals
//
// A phase without a shown difference has no causes. The causes need [fewestTraces] traces of both targets, all with times.
package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

const (
	// fewestTraces is the smallest number of traces of a target. Ranges of two traces are separate in one of three comparisons of equal targets.
	fewestTraces = 3
	// smallest is the smallest share of a phase's difference that is a cause.
	smallest = 0.02
)

// Explanation has the causes of the differences of target B against target A.
type Explanation struct {
	Run, A, B  string
	Benchmarks []Benchmark
}

// Benchmark has the phases that both targets have, in the order of their first call.
type Benchmark struct {
	analysis.Key
	Phases []Phase
}

// Phase is a call of the engine.
type Phase struct {
	analysis.ComparedPhase
	// Reason is the reason of a phase without causes, with a remedy if one is known.
	Reason string
	// TracesA and TracesB are the numbers of traces.
	TracesA, TracesB int
	// Times are the parts of the phase's time, the causes first, each in the order of their size.
	Times []Time
	// Counts are the counts with ranges that do not overlap.
	Counts []Count
}

// Differs reports whether the untraced trials show a difference.
func (p *Phase) Differs() bool { return p.Comparison.Differs() }

// Causes are the parts that are causes.
func (p *Phase) Causes() []Time {
	n := slices.IndexFunc(p.Times, func(t Time) bool { return !t.IsCause })
	if n < 0 {
		n = len(p.Times)
	}
	return p.Times[:n]
}

// Unexplained is the part of the difference without a cause, in seconds.
func (p *Phase) Unexplained() float64 {
	rest := p.Difference.Median
	for _, t := range p.Causes() {
		rest -= t.Difference
	}
	return rest
}

// place is a component in a step.
type place struct{ step, component string }

// Outside is the component of the time when no process of the target held the step up.
const Outside = "outside"

// Time is a part of a phase's time.
type Time struct {
	Step, Component string
	Cause           result.TimeCause // empty for Outside
	// Calls are the system calls of a wait, the longest first.
	Calls []string
	// A and B are the values after the scale, in seconds.
	A, B Seconds
	// Difference is the difference of the medians.
	Difference float64
	IsCause    bool
}

// Seconds are the least, the median and the largest value over the traces of a target.
type Seconds struct{ Least, Median, Most float64 }

func (s Seconds) overlaps(t Seconds) bool { return s.Least <= t.Most && t.Least <= s.Most }

// Options select the benchmarks and the treatment of emulated CPUs.
type Options struct {
	// Matches reports whether a benchmark is selected.
	Matches          func(benchmark string) bool
	EmulatedVerdicts bool
}

// New explains the differences of b against a. An error names a target that the run lacks, or that no benchmark is left.
func New(run *result.Run, a, b string, o Options) (*Explanation, error) {
	numbers := analysis.New([]result.Run{*run}, analysis.Options{EmulatedVerdicts: o.EmulatedVerdicts})
	if err := known(run, a, b); err != nil {
		return nil, err
	}
	e := Of(numbers, run, a, b, func(key analysis.Key) bool { return o.Matches(key.Name) })
	if e.Benchmarks == nil {
		return nil, fmt.Errorf("run %s has no benchmark with timed calls of both %s and %s; name other targets, or another --benchmark", run.ID, a, b)
	}
	return e, nil
}

// Of explains the differences of b against a within the analysis of the run alone.
func Of(numbers *analysis.Analysis, run *result.Run, a, b string, matches func(benchmark analysis.Key) bool) *Explanation {
	e := &Explanation{Run: run.ID, A: a, B: b}
	for _, bench := range numbers.Benchmarks() {
		if !matches(bench.Key) {
			continue
		}
		phases := numbers.ComparePhases(0, run.Trials, bench, a, b)
		if phases == nil {
			continue
		}
		one := Benchmark{Key: bench.Key}
		tracesA, tracesB := tracesOf(run, bench.Key, a), tracesOf(run, bench.Key, b)
		for _, phase := range phases {
			one.Phases = append(one.Phases, newPhase(phase, tracesA, tracesB))
		}
		e.Benchmarks = append(e.Benchmarks, one)
	}
	return e
}

// known refuses a target that the run lacks.
func known(run *result.Run, names ...string) error {
	if names[0] == names[1] {
		return fmt.Errorf("%s is named twice; name two targets", names[0])
	}
	var list []string
	for _, t := range run.Targets {
		list = append(list, t.Name)
	}
	for _, name := range names {
		if !slices.Contains(list, name) {
			return fmt.Errorf("run %s has no target %s; its targets are %q", run.ID, name, list)
		}
	}
	return nil
}

// tracesOf are the traces of a cell with counts.
func tracesOf(run *result.Run, key analysis.Key, target string) (traces []*result.Trace) {
	for i := range run.Traces {
		t := &run.Traces[i]
		if t.Status == result.OK && t.Benchmark == key.Name && t.Params == key.Params && t.Target == target {
			traces = append(traces, t)
		}
	}
	return traces
}

func newPhase(comparison analysis.ComparedPhase, tracesA, tracesB []*result.Trace) Phase {
	p := Phase{ComparedPhase: comparison, TracesA: len(tracesA), TracesB: len(tracesB)}
	if min(p.TracesA, p.TracesB) >= fewestTraces {
		p.Counts = newCounts(p.Name, tracesA, tracesB)
	}
	p.Reason = p.refusal(tracesA, tracesB)
	if p.Reason == "" {
		p.setTimes(tracesA, tracesB)
	}
	return p
}

// refusal is the reason of a phase without causes.
func (p *Phase) refusal(tracesA, tracesB []*result.Trace) string {
	switch {
	case min(p.TracesA, p.TracesB) < fewestTraces:
		return fmt.Sprintf("the targets have %d and %d traces, and each needs %d; measure again with --trace %d", p.TracesA, p.TracesB, fewestTraces, fewestTraces)
	case p.Comparison.Verdict == stats.Withheld:
		return "speed has no verdict on an emulated CPU; " + finding.EmulatedVerdictsFlag + " gives one"
	case !p.Differs():
		return fmt.Sprintf("no difference is shown (%s); more blocks may show one", p.Comparison.Verdict)
	case !timed(tracesA) || !timed(tracesB):
		return "a trace has no times: it is older than times in traces, or has more waits than the tracer has places for; trace smaller parameters"
	}
	return ""
}

// timed reports whether all traces have times.
func timed(traces []*result.Trace) bool {
	return !slices.ContainsFunc(traces, func(t *result.Trace) bool {
		return !slices.ContainsFunc(t.Counts, func(c result.TraceCounts) bool { return c.Wall != nil })
	})
}

// timeKey is a part of a phase's time.
type timeKey struct {
	place
	cause result.TimeCause
}

// setTimes divides the phase.
func (p *Phase) setTimes(tracesA, tracesB []*result.Trace) {
	lengths := map[timeKey]map[string]time.Duration{}
	valuesA, valuesB := p.times(tracesA, p.Base, lengths), p.times(tracesB, p.Value, lengths)
	keys := map[timeKey]bool{}
	for _, trace := range slices.Concat(valuesA, valuesB) {
		for key := range trace {
			keys[key] = true
		}
	}
	for key := range keys {
		t := Time{Step: key.step, Component: key.component, Cause: key.cause, Calls: callsOf(lengths[key]), A: secondsOf(valuesA, key), B: secondsOf(valuesB, key)}
		t.Difference = t.B.Median - t.A.Median
		t.IsCause = !t.A.overlaps(t.B) && math.Abs(t.Difference) >= smallest*math.Abs(p.Difference.Median)
		p.Times = append(p.Times, t)
	}
	slices.SortFunc(p.Times, func(a, b Time) int {
		order := func(t Time) int {
			if t.IsCause {
				return 0
			}
			return 1
		}
		return cmp.Or(
			order(a)-order(b), cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference)),
			cmp.Compare(a.Step, b.Step), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Cause, b.Cause),
		)
	})
}

// times are the parts of the phase in each trace, in seconds, scaled to the untraced median. It adds the lengths of waits by system call to lengths.
func (p *Phase) times(traces []*result.Trace, untraced float64, lengths map[timeKey]map[string]time.Duration) []map[timeKey]float64 {
	parts := make([]map[timeKey]time.Duration, len(traces))
	lengthsOfWork := make([]float64, len(traces))
	for i, t := range traces {
		parts[i] = map[timeKey]time.Duration{}
		length := analysis.PhaseTimes(t.Phases)[p.Name]
		rest, queue := length, time.Duration(0)
		for _, c := range t.Counts {
			if analysis.PhaseOf(c.Step) != p.Name {
				continue
			}
			for name, d := range c.Wall {
				key := timeKey{place{c.Step, c.Component}, result.CauseOf(name)}
				parts[i][key] += d
				rest -= d
				if key.cause == result.CauseQueue {
					queue += d
				}
				if lengths[key] == nil {
					lengths[key] = map[string]time.Duration{}
				}
				lengths[key][name] += d
			}
		}
		parts[i][timeKey{place: place{p.Name, Outside}}] = max(0, rest)
		lengthsOfWork[i] = (length - queue).Seconds()
	}
	scale := min(1, untraced/stats.Median(lengthsOfWork))
	values := make([]map[timeKey]float64, len(traces))
	for i := range parts {
		values[i] = map[timeKey]float64{}
		for key, length := range parts[i] {
			values[i][key] = length.Seconds()
			if key.cause == result.CauseRunning || key.component == Outside {
				values[i][key] *= scale
			}
		}
	}
	return values
}

// callsOf are the system calls of a part, the longest first.
func callsOf(lengths map[string]time.Duration) []string {
	calls := slices.DeleteFunc(slices.Collect(maps.Keys(lengths)), func(name string) bool {
		return name == result.WallRunning || name == result.WallQueue || name == result.OutsideCalls
	})
	slices.SortFunc(calls, func(a, b string) int { return cmp.Or(cmp.Compare(lengths[b], lengths[a]), cmp.Compare(a, b)) })
	return calls
}

// secondsOf is the range of a part. A trace without it has 0.
func secondsOf(traces []map[timeKey]float64, key timeKey) Seconds {
	values := make([]float64, len(traces))
	for i, trace := range traces {
		values[i] = trace[key]
	}
	return Seconds{slices.Min(values), stats.Median(values), slices.Max(values)}
}
