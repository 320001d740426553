package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Traced are the counts of the traces of a cell. Traces without counts are left out.
type Traced struct {
	Key
	Target string       `json:"target" doc:"Name of the target."`
	Count  int          `json:"traces" schema:"minimum=1" doc:"Number of traces with counts."`
	Steps  []TracedStep `json:"steps" doc:"The counts by step and component, the steps in the order of their begin."`
}

// Components lists the components with counts, in the order of their first step.
func (t *Traced) Components() []string {
	var names []string
	for i := range t.Steps {
		if !slices.Contains(names, t.Steps[i].Component) {
			names = append(names, t.Steps[i].Component)
		}
	}
	return names
}

// Names are the system calls of some components over all steps: first the calls that each trace has, then the rest. Both are sorted.
func (t *Traced) Names(components ...string) (core, rest []string) {
	counts := map[string]int{} // traces by name
	for n := range t.Count {
		names := map[string]bool{}
		for i := range t.Steps {
			if slices.Contains(components, t.Steps[i].Component) {
				for name := range t.Steps[i].traces[n].Calls {
					names[name] = true
				}
			}
		}
		for name := range names {
			counts[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] == t.Count {
			core = append(core, name)
		} else {
			rest = append(rest, name)
		}
	}
	return core, rest
}

// TracedStep is the work of a component in a step. A name that a trace lacks counts as 0 there.
type TracedStep struct {
	Step      string           `json:"step,omitempty" doc:"Name of a phase, or phase/step; absent for the time outside of all calls of the engine."`
	Component string           `json:"component" doc:"Part of the target."`
	Calls     map[string]Range `json:"calls" doc:"System calls by name."`
	Programs  map[string]Range `json:"programs" doc:"Executed programs by name."`
	Processes Range            `json:"processes" doc:"New processes."`
	Threads   Range            `json:"threads" doc:"New threads."`
	Wall      map[string]Range `json:"wall_ns,omitempty" doc:"The component's part of the step's own time, in nanoseconds: running, run queue, and waits by system call. No moment counts twice. For shares only: it is under the tracer."`

	traces []*result.TraceCounts
}

// Sum is the range of the sum of some system calls. It is narrower than the sum of their ranges.
func (s *TracedStep) Sum(isPart func(call string) bool) Range {
	return rangeOf(s.traces, func(c *result.TraceCounts) int64 {
		sum := int64(0)
		for name, n := range c.Calls {
			if isPart(name) {
				sum += n
			}
		}
		return sum
	})
}

// Time is the range of the component's part of the step's own time, in seconds, over some of its names.
func (s *TracedStep) Time(isPart func(name string) bool) (float64, float64) {
	r := rangeOf(s.traces, func(c *result.TraceCounts) int64 {
		sum := time.Duration(0)
		for name, length := range c.Wall {
			if isPart(name) {
				sum += length
			}
		}
		return int64(sum)
	})
	return time.Duration(r.Least).Seconds(), time.Duration(r.Most).Seconds()
}

// Executed is the range of the number of all executed programs.
func (s *TracedStep) Executed() Range {
	return rangeOf(s.traces, func(c *result.TraceCounts) int64 {
		sum := int64(0)
		for _, n := range c.Programs {
			sum += n
		}
		return sum
	})
}

// Range has the least and the most of a count over the traces of a cell. They are equal for a count that the next trace should have too.
type Range struct {
	Least int64 `json:"least" schema:"minimum=0" doc:"Smallest count of a trace."`
	Most  int64 `json:"most" schema:"minimum=0" doc:"Largest count of a trace."`
}

// IsOne reports whether all traces have the same count.
func (r Range) IsOne() bool { return r.Least == r.Most }

// String spells the range: "52", or "259–313".
func (r Range) String() string {
	if r.IsOne() {
		return strconv.FormatInt(r.Least, 10)
	}
	return fmt.Sprintf("%d–%d", r.Least, r.Most)
}

// OutsideCalls is the name of the time outside of all calls of the engine, whose step is empty.
const OutsideCalls = "(between calls)"

// The groups of system calls that a report sums.
var (
	MountCalls = []string{"mount", "move_mount"}
	SyncCalls  = []string{"fdatasync", "fsync", "msync", "sync", "sync_file_range", "syncfs"}
	OpenCalls  = []string{"creat", "open", "openat", "openat2"}
)

// Traced lists the cells with counts of system calls: the benchmarks in the order of their first trace, and the targets in the order of the run.
func (r *Run) Traced() []Traced {
	var cells []result.Cell
	var keys []Key
	traces := map[result.Cell][]*result.Trace{}
	for i := range r.Traces {
		t := &r.Traces[i]
		if t.Status != result.OK || t.OfFunctions() {
			continue
		}
		if traces[t.Cell] == nil {
			cells = append(cells, t.Cell)
			keys = append(keys, Key{t.Benchmark, t.Params})
		}
		traces[t.Cell] = append(traces[t.Cell], t)
	}
	slices.SortStableFunc(cells, func(a, b result.Cell) int {
		place := func(c result.Cell) (benchmark, target int) {
			return slices.Index(keys, Key{c.Benchmark, c.Params}), slices.IndexFunc(r.Targets, func(t Target) bool { return t.Name == c.Target })
		}
		benchA, targetA := place(a)
		benchB, targetB := place(b)
		return cmp.Or(benchA-benchB, targetA-targetB)
	})
	return lists.Convert(cells, func(c *result.Cell) Traced {
		return Traced{Key{c.Benchmark, c.Params}, c.Target, len(traces[*c]), tracedSteps(traces[*c])}
	})
}

// tracedSteps are the counts of some traces. The time outside of all calls comes last.
func tracedSteps(traces []*result.Trace) []TracedStep {
	type place struct{ step, component string }
	var steps []string
	var places []place
	counts := map[place][]*result.TraceCounts{}
	for n, t := range traces {
		for i := range t.Counts {
			c := &t.Counts[i]
			p := place{c.Step, c.Component}
			if counts[p] == nil {
				counts[p] = make([]*result.TraceCounts, len(traces))
				places = append(places, p)
			}
			if !slices.Contains(steps, c.Step) {
				steps = append(steps, c.Step)
			}
			counts[p][n] = c
		}
	}
	order := func(step string) int {
		if step == "" {
			return len(steps)
		}
		return slices.Index(steps, step)
	}
	slices.SortStableFunc(places, func(a, b place) int { return order(a.step) - order(b.step) })
	return lists.Convert(places, func(p *place) TracedStep {
		list := counts[*p]
		for i := range list {
			if list[i] == nil {
				list[i] = &result.TraceCounts{}
			}
		}
		return TracedStep{
			Step: p.step, Component: p.component, traces: list,
			Calls:     rangesOf(list, func(c *result.TraceCounts) map[string]int64 { return c.Calls }),
			Programs:  rangesOf(list, func(c *result.TraceCounts) map[string]int64 { return c.Programs }),
			Processes: rangeOf(list, func(c *result.TraceCounts) int64 { return c.Processes }),
			Threads:   rangeOf(list, func(c *result.TraceCounts) int64 { return c.Threads }),
			Wall: rangesOf(list, func(c *result.TraceCounts) map[string]int64 {
				lengths := map[string]int64{}
				for name, length := range c.Wall {
					lengths[name] = int64(length)
				}
				return lengths
			}),
		}
	})
}

// rangeOf is the range of a count over traces.
func rangeOf(list []*result.TraceCounts, count func(*result.TraceCounts) int64) Range {
	r := Range{count(list[0]), count(list[0])}
	for _, item := range list[1:] {
		n := count(item)
		r = Range{min(r.Least, n), max(r.Most, n)}
	}
	return r
}

// rangesOf are the ranges of counts by name.
func rangesOf(list []*result.TraceCounts, counts func(*result.TraceCounts) map[string]int64) map[string]Range {
	names := map[string]bool{}
	for _, c := range list {
		for name := range counts(c) {
			names[name] = true
		}
	}
	ranges := map[string]Range{}
	for name := range maps.Keys(names) {
		ranges[name] = rangeOf(list, func(c *result.TraceCounts) int64 { return counts(c)[name] })
	}
	return ranges
}
