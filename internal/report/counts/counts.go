// Package counts compares the counts of traces between two sides, A and B: system calls by name, and groups of them, by benchmark, step and
// component.
//
// A count that is equal in all traces of a side decides without statistics: another equal count on the other side is a difference. Counts that
// depend on the scheduler vary from trace to trace, such as futex and the calls of Go's threads. The package assumes nothing about names: a
// count that varies on a side, or that a selfcheck has seen to vary on the target, decides no gate, and the answer lists it.
//
// Few traces show little. A count that has two values with equal probability is constant and different in n traces a side with a
// probability of 2/4ⁿ: 3 % for 3 traces, and it may be one of some thirty such groups of a runtime in Go. So a difference is shown only
// with [ShownBy] traces a side, or if a selfcheck has found the count stable on this target. Less is a suspicion, which fresh traces confirm or refute.
//
// Work can move from one step to the next, because a process goes on after a call has returned. If a component's count over all steps is stable
// and equal on both sides, a change of a step decides nothing. If a step varies and the sum over all steps does not, the sum decides.
package counts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	// ShownBy is the number of traces a side that show a difference.
	ShownBy = 10
	// LearnedBy is this number for a count that was equal in all traces of a selfcheck. A count with a rare second value may have escaped 20
	// traces: then 5 traces a side show a difference with a probability below 3/10⁶, and 3 with 2/10⁴.
	LearnedBy = 5
)

// AllSteps is the step of the sum over all steps of a component.
const AllSteps = "all steps"

// Place is the place of a count.
type Place struct {
	Step      string `json:"step,omitempty" doc:"Name of a phase, phase/step, or \"all steps\" for their sum; absent for the time outside of all calls of the engine."`
	Component string `json:"component" doc:"Part of the target."`
	Name      string `json:"name" doc:"Name of a system call, or of a group: execs, mounts, syncs, opens, forks, threads."`
}

// Count is a count on both sides.
type Count struct {
	Place
	A analysis.Range `json:"a" doc:"The counts of the traces of A."`
	B analysis.Range `json:"b" doc:"The counts of the traces of B."`
	// Varies is set for a count that decides no gate.
	Varies bool `json:"varies,omitempty" doc:"The count varies from trace to trace on a side, or has varied in a selfcheck of this target. Such a count decides no gate."`
	// Moved is set for a count of a step if the sum over all steps is stable and equal.
	Moved bool `json:"moved,omitempty" doc:"The sum over all steps is stable and equal on both sides, so the work has only moved to another step. Such a count decides no gate."`
}

// differs reports whether the ranges of the sides do not overlap.
func (c *Count) differs() bool { return c.A.Most < c.B.Least || c.B.Most < c.A.Least }

// Side is the traces of a target, without those that have no counts.
type Side struct {
	Target string
	Traces []*result.Trace
}

// Cell is a benchmark with its counts on both sides.
type Cell struct {
	analysis.Key
	TargetA  string  `json:"target_a" doc:"Target of side A."`
	TargetB  string  `json:"target_b" doc:"Target of side B."`
	TracesA  int     `json:"traces_a" schema:"minimum=1" doc:"Number of traces with counts of A."`
	TracesB  int     `json:"traces_b" schema:"minimum=1" doc:"Number of traces with counts of B."`
	Learned  int     `json:"learned_traces,omitempty" schema:"minimum=1" doc:"Number of traces in the selfcheck that shows which counts of this target vary; absent without one."`
	Shown    bool    `json:"shown" doc:"The traces are enough to show a change of a count that does not vary."`
	Changes  []Count `json:"changes" doc:"The system calls whose counts do not overlap. A sum over all steps is in the list only if no step shows the change. A count that varies is in the list only with enough traces."`
	Excluded []Count `json:"excluded" doc:"The system calls that decide no gate, because their counts vary."`

	counts []Count // of all places and names, in the order of the steps, the sums at the end
	places map[Place]*Count
}

// Compare compares the traces of a benchmark on two sides. learned is the knowledge about the target, or nil.
func Compare(key analysis.Key, a, b Side, learned *Learned) Cell {
	return newCell(key, a.Target, b.Target, collect(a.Traces), collect(b.Traces), learned)
}

func newCell(key analysis.Key, targetA, targetB string, a, b table, learned *Learned) Cell {
	c := Cell{Key: key, TargetA: targetA, TargetB: targetB, TracesA: a.traces, TracesB: b.traces, Changes: []Count{}, Excluded: []Count{}, places: map[Place]*Count{}}
	varying, isKnown := learned.varying(key)
	if isKnown {
		c.Learned = learned.Traces
	}
	traces := min(c.TracesA, c.TracesB)
	c.Shown = traces >= ShownBy || isKnown && traces >= LearnedBy
	for _, p := range order(a.places, b.places) {
		count := Count{Place: p, A: a.ranges[p], B: b.ranges[p]}
		count.Varies = varying[p] || a.varying[p] || b.varying[p] || !count.A.IsOne() || !count.B.IsOne()
		c.counts = append(c.counts, count)
	}
	for i := range c.counts {
		c.places[c.counts[i].Place] = &c.counts[i]
	}
	changes := map[Place]bool{}
	for i := range c.counts {
		count := &c.counts[i]
		sum := c.sum(count)
		count.Moved = count != sum && !sum.Varies && count.differs() && !sum.differs()
		switch {
		case isGroup(count.Name):
		case count.differs() && (!count.Varies || traces >= ShownBy):
			if count == sum && changes[sum.Place] {
				continue
			}
			changes[sum.Place] = changes[sum.Place] || !count.Varies && !count.Moved
			c.Changes = append(c.Changes, *count)
		case count.Varies && count != sum && sum.Varies:
			c.Excluded = append(c.Excluded, *count)
		}
	}
	return c
}

// sum is the sum over all steps of a count.
func (c *Cell) sum(count *Count) *Count {
	return c.places[Place{AllSteps, count.Component, count.Name}]
}

// isStable reports whether a change of a count is a difference of the sides.
func (c *Count) isStable() bool { return !c.Varies && !c.Moved }

// Different reports whether the traces show a count that differs.
func (c *Cell) Different() bool {
	return c.Shown && slices.ContainsFunc(c.Changes, func(count Count) bool { return count.isStable() })
}

// Suspicious reports whether a count seems to differ, and more traces are needed to show it.
func (c *Cell) Suspicious() bool {
	return !c.Shown && slices.ContainsFunc(c.Changes, func(count Count) bool { return count.isStable() })
}

// table is the counts of some traces.
type table struct {
	traces int
	// places are in the order of the steps, and sums at the end.
	places []Place
	ranges map[Place]analysis.Range
	// varying are the counts of a file that are marked so.
	varying map[Place]bool
}

// groups are the counts that sum system calls, by name.
var groups = map[string][]string{"mounts": analysis.MountCalls, "syncs": analysis.SyncCalls, "opens": analysis.OpenCalls}

// groupNames are the names of all counts that are no system calls.
var groupNames = []string{"execs", "forks", "mounts", "opens", "syncs", "threads"}

func isGroup(name string) bool { return slices.Contains(groupNames, name) }

// collect returns the counts of traces. A name that a trace lacks counts as 0 there.
func collect(traces []*result.Trace) table {
	t := table{traces: len(traces), ranges: map[Place]analysis.Range{}}
	values := map[Place][]int64{}
	for n, trace := range traces {
		add := func(step, component, name string, count int64) {
			if count == 0 {
				return
			}
			for _, p := range []Place{{step, component, name}, {AllSteps, component, name}} {
				if values[p] == nil {
					values[p] = make([]int64, len(traces))
					t.places = append(t.places, p)
				}
				values[p][n] += count
			}
		}
		for i := range trace.Counts {
			c := &trace.Counts[i]
			for name, count := range c.Calls {
				add(c.Step, c.Component, name, count)
				for group, calls := range groups {
					if slices.Contains(calls, name) {
						add(c.Step, c.Component, group, count)
					}
				}
			}
			for _, count := range c.Programs {
				add(c.Step, c.Component, "execs", count)
			}
			add(c.Step, c.Component, "forks", c.Processes)
			add(c.Step, c.Component, "threads", c.Threads)
		}
	}
	for p, list := range values {
		t.ranges[p] = analysis.Range{Least: slices.Min(list), Most: slices.Max(list)}
	}
	t.places = order(t.places)
	return t
}

// order returns places by the first occurrence of their steps and components in the lists, and by name. The time outside of all calls comes
// after all steps, and the sums come last.
func order(lists ...[]Place) []Place {
	places := slices.Concat(lists...)
	var steps, components []string
	for _, p := range places {
		if !slices.Contains(steps, p.Step) {
			steps = append(steps, p.Step)
		}
		if !slices.Contains(components, p.Component) {
			components = append(components, p.Component)
		}
	}
	step := func(p Place) int {
		switch p.Step {
		case "":
			return len(steps)
		case AllSteps:
			return len(steps) + 1
		}
		return slices.Index(steps, p.Step)
	}
	slices.SortFunc(places, func(p, q Place) int {
		return cmp.Or(step(p)-step(q), slices.Index(components, p.Component)-slices.Index(components, q.Component), strings.Compare(p.Name, q.Name))
	})
	return slices.Compact(places)
}

// Traced is the traces of a cell over several runs.
type Traced struct {
	result.Cell
	// Traces have counts.
	Traces []*result.Trace
	// Reason is the cause of a trace without counts.
	Reason string
}

// Collect lists the traced cells of runs in the order of their first trace.
func Collect(runs []result.Run) []Traced {
	var cells []Traced
	for i := range runs {
		for n := range runs[i].Traces {
			t := &runs[i].Traces[n]
			cell := lists.Place(&cells, func(c *Traced) bool { return c.Cell == t.Cell }, Traced{Cell: t.Cell})
			if t.Status == result.OK {
				cell.Traces = append(cell.Traces, t)
			} else {
				cell.Reason = t.Reason
			}
		}
	}
	return cells
}
