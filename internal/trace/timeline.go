package trace

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Limits on a timeline, which is a drawing and no measurement.
const (
	mostLanes  = 32               // processes
	mostStates = 400              // of all lanes
	mostSteps  = 100              // A benchmark with more calls has the first ones in its timeline.
	finest     = time.Microsecond // resolution
)

// Timeline returns the states of the processes after Stop. It is nil for a trace without times, without a call, or without a process during the calls.
func (t *Tracer) Timeline() *result.TraceTimeline { return t.timeline }

// newTimeline makes the timeline of the spans of the trace.
func (t *Tracer) newTimeline(spans []span, components map[uint64]monitor.Component) (*result.TraceTimeline, error) {
	list, err := t.programs()
	if err != nil {
		return nil, fmt.Errorf("read the programs of the trace: %w", err)
	}
	names := map[uint64]string{}
	for i, pid := range t.target.Daemons {
		names[uint64(i+1)] = commandOf(pid)
	}
	for i := range list {
		names[list[i].id] = list[i].name()
	}
	return newTimeline(spans, t.boundaries, t.steps, t.end, func(id uint64) (name string, component monitor.Component) {
		return cmp.Or(result.ConditionText(names[id]), string(components[id])), components[id]
	}), nil
}

// commandOf is the kernel's name of a process, or nothing if the process has ended.
func commandOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // the name is for readers only
	return strings.TrimSpace(string(name))
}

// window is the part of a trace in its timeline.
type window struct {
	begin, end uint64
	boundaries []boundary // of the steps within it, and its end with the step outsideWindow
}

// outsideWindow is the step of the time after a window.
const outsideWindow = ^uint32(0)

// windowOf is the time from the first step with a name to the end of the last one. It returns false without one.
func windowOf(boundaries []boundary, steps []string, end uint64) (window, bool) {
	isNamed := func(b boundary) bool { return steps[b.step] != "" }
	first := slices.IndexFunc(boundaries, isNamed)
	if first < 0 {
		return window{}, false
	}
	last := first
	for i := first; i < min(len(boundaries), first+mostSteps); i++ {
		if isNamed(boundaries[i]) {
			last = i
		}
	}
	w := window{begin: boundaries[first].time, end: end, boundaries: slices.Clone(boundaries[first : last+1])}
	if last+1 < len(boundaries) {
		w.end = boundaries[last+1].time
	}
	w.boundaries = append(w.boundaries, boundary{w.end, outsideWindow})
	return w, w.end > w.begin
}

// at is a time of the trace as one of the timeline.
func (w *window) at(moment uint64) time.Duration {
	return time.Duration(min(max(moment, w.begin), w.end) - w.begin)
}

// stretch is the time between two changes of a process's state. The cause is empty for an idle process.
type stretch struct {
	begin, end uint64
	cause      result.TimeCause
}

func (s *stretch) length() time.Duration { return time.Duration(s.end - s.begin) }

// lane is a process with its spans, in the order of their begin.
type lane struct {
	result.TraceLane
	held      time.Duration // the sum of Wall
	spans     []span
	stretches []stretch
}

// order compares the begins of two processes.
func (l *lane) order(m *lane) int {
	a, b := &l.spans[0], &m.spans[0]
	return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.process, b.process))
}

// newTimeline makes the timeline of the processes. program returns the name and the component of a program.
func newTimeline(spans []span, boundaries []boundary, steps []string, end uint64, program func(id uint64) (string, monitor.Component)) *result.TraceTimeline {
	w, ok := windowOf(boundaries, steps, end)
	if !ok {
		return nil
	}
	crowds := crowdedProcesses(spans)
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	lanes := lanesOf(spans, &w, program)
	if len(lanes) == 0 {
		return nil
	}
	out := &result.TraceTimeline{Length: w.at(w.end), Processes: len(lanes)}
	for _, b := range w.boundaries[:len(w.boundaries)-1] {
		out.Steps = append(out.Steps, result.TraceStep{Name: steps[b.step], At: w.at(b.time)})
	}
	eachMoment(spans, crowds, w.boundaries, end, func(step int, begin, end uint64, list []*span, name string) {
		if w.boundaries[step].step == outsideWindow {
			return
		}
		for _, s := range list {
			length := time.Duration(end-begin) / time.Duration(len(list))
			lanes[s.process].Wall[result.CauseOf(name)] += length
			lanes[s.process].held += length
		}
	})
	choice := slices.SortedFunc(maps.Values(lanes), func(a, b *lane) int { return cmp.Or(cmp.Compare(b.held, a.held), a.order(b)) })
	choice = choice[:min(len(choice), mostLanes)]
	slices.SortFunc(choice, (*lane).order)
	for _, l := range choice {
		l.stretches = stretchesOf(l.spans, crowds, &w, end)
	}
	out.Resolution = resolutionOf(choice)
	for _, l := range choice {
		l.States = statesOf(merged(l.stretches, out.Resolution), &w)
		out.Lanes = append(out.Lanes, l.TraceLane)
	}
	return out
}

// lanesOf are the processes with a span in the window, by process ID. The ID of a program is the time of its execve.
func lanesOf(spans []span, w *window, program func(id uint64) (string, monitor.Component)) map[uint32]*lane {
	lanes := map[uint32]*lane{}
	for i := range spans {
		s := &spans[i]
		if s.begin >= w.end || s.end <= w.begin {
			continue
		}
		spell := func(moment uint64) result.TraceProgram {
			name, component := program(s.program)
			return result.TraceProgram{Name: name, Component: string(component), At: w.at(moment)}
		}
		l := lanes[s.process]
		if l == nil {
			l = &lane{TraceLane: result.TraceLane{TraceProgram: spell(s.begin), Wall: map[result.TimeCause]time.Duration{}}}
			lanes[s.process] = l
		} else if s.program != l.spans[len(l.spans)-1].program {
			l.Execs = append(l.Execs, spell(s.program))
		}
		l.spans = append(l.spans, *s)
		l.End = max(l.End, w.at(s.end))
	}
	return lanes
}

// stretchesOf are the states of a process in the window, without gaps from its begin to its end.
func stretchesOf(spans []span, crowds map[uint32]bool, w *window, end uint64) (list []stretch) {
	eachMoment(spans, crowds, w.boundaries, end, func(step int, begin, end uint64, owners []*span, name string) {
		if w.boundaries[step].step == outsideWindow {
			return
		}
		s := stretch{begin, end, ""}
		if owners != nil {
			s.cause = result.CauseOf(name)
		}
		list = extended(list, s)
	})
	return list
}

// extended adds a stretch to adjacent ones.
func extended(list []stretch, s stretch) []stretch {
	if n := len(list); n > 0 && list[n-1].cause == s.cause && list[n-1].end == s.begin {
		list[n-1].end = s.end
		return list
	}
	return append(list, s)
}

// merged replaces adjacent stretches that are shorter than a resolution by one with the state of most of their time.
func merged(list []stretch, resolution time.Duration) (out []stretch) {
	for i := 0; i < len(list); {
		s := list[i]
		sums := map[result.TimeCause]time.Duration{}
		for ; i < len(list) && list[i].length() < resolution && time.Duration(list[i].begin-s.begin) < resolution; i++ {
			s.end = list[i].end
			sums[list[i].cause] += list[i].length()
			if sums[list[i].cause] > sums[s.cause] {
				s.cause = list[i].cause
			}
		}
		if len(sums) == 0 {
			i++
		}
		out = extended(out, s)
	}
	return out
}

// resolutionOf is the finest resolution with few enough states.
func resolutionOf(lanes []*lane) time.Duration {
	for resolution := finest; ; resolution *= 2 {
		count := 0
		for _, l := range lanes {
			for _, s := range merged(l.stretches, resolution) {
				if s.cause != "" {
					count++
				}
			}
		}
		if count <= mostStates {
			return resolution
		}
	}
}

// statesOf are the times of each state, the states in the order of their first time.
func statesOf(list []stretch, w *window) (states []result.TraceState) {
	for i := range list {
		s := &list[i]
		if s.cause == "" {
			continue
		}
		n := slices.IndexFunc(states, func(state result.TraceState) bool { return state.Cause == s.cause })
		if n < 0 {
			n, states = len(states), append(states, result.TraceState{Cause: s.cause})
		}
		states[n].At = append(states[n].At, w.at(s.begin))
		states[n].Lengths = append(states[n].Lengths, s.length())
	}
	return states
}
