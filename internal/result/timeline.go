package result

import (
	"errors"
	"fmt"
	"time"
)

// TraceTimeline has the states of the target's processes over the time of a trace, from the begin of the first call of the engine to the end of
// the last one. It is for drawings: short states are merged, and the sums are in Wall.
type TraceTimeline struct {
	Length time.Duration `json:"length_ns"`
	// Resolution is a length. Shorter states are merged with their neighbours, so a state may be wrong for less than four resolutions.
	Resolution time.Duration `json:"resolution_ns"`
	// Steps are the begins of the steps. A step lasts until the next one.
	Steps []TraceStep `json:"steps"`
	// Processes counts the processes of the target. Lanes has those that hold the target up longest, in the order of their begin.
	Processes int         `json:"processes"`
	Lanes     []TraceLane `json:"lanes"`
}

// TraceStep is the begin of a step, whose name is empty between the calls of the engine.
type TraceStep struct {
	Name string        `json:"step,omitempty"`
	At   time.Duration `json:"at_ns"`
}

// TraceLane is a process of the target.
type TraceLane struct {
	TraceProgram               // at the begin
	End          time.Duration `json:"end_ns"`
	// Execs are the programs that the process executes later.
	Execs []TraceProgram `json:"execs,omitempty"`
	// Wall is the process's part of the timeline's own time, by cause. No moment counts twice, as in TraceCounts.
	Wall   map[TimeCause]time.Duration `json:"wall_ns,omitempty"`
	States []TraceState                `json:"states,omitempty"`
}

// TraceProgram is a program from a time on. The name has up to 15 bytes.
type TraceProgram struct {
	Name      string        `json:"program"`
	Component string        `json:"component"`
	At        time.Duration `json:"at_ns"`
}

// TraceState is the times of a process in a state. A process with several threads runs if one of them runs, and waits for a CPU if one of them
// waits for a CPU. Times without a state are idle: the process waits for work that does not come in the step.
type TraceState struct {
	Cause   TimeCause       `json:"cause"`
	At      []time.Duration `json:"at_ns"`
	Lengths []time.Duration `json:"length_ns"`
}

// maxTraceLanes is the largest number of processes, of programs of a process, of steps, of states and of times in a state.
const maxTraceLanes = 10_000

func (t *TraceTimeline) validate() error {
	if min(t.Length, t.Resolution) < 0 || t.Processes < len(t.Lanes) {
		return errors.New("a length is negative, or it has more lanes than processes")
	}
	if n := max(len(t.Steps), len(t.Lanes)); n > maxTraceLanes {
		return fmt.Errorf("it has %d steps or lanes; %d are allowed", n, maxTraceLanes)
	}
	for i, step := range t.Steps {
		if step.Name != ConditionText(step.Name) || !t.includes(step.At) || i > 0 && step.At < t.Steps[i-1].At {
			return fmt.Errorf("step %.50q at %v must be printable text on one line, and follow the step before it", step.Name, step.At)
		}
	}
	for i := range t.Lanes {
		if err := t.validateLane(&t.Lanes[i]); err != nil {
			return fmt.Errorf("lane %d (%.50q): %w", i+1, t.Lanes[i].Name, err)
		}
	}
	return nil
}

// includes reports whether a time is within the timeline.
func (t *TraceTimeline) includes(moment time.Duration) bool { return 0 <= moment && moment <= t.Length }

func (t *TraceTimeline) validateLane(l *TraceLane) error {
	if n := max(len(l.Execs), len(l.States), len(l.Wall)); n > maxTraceLanes {
		return fmt.Errorf("it has %d programs, causes or states; %d are allowed", n, maxTraceLanes)
	}
	for _, p := range append([]TraceProgram{l.TraceProgram}, l.Execs...) {
		if p.Name == "" || p.Component == "" || p.Name != ConditionText(p.Name) || p.Component != ConditionText(p.Component) || !t.includes(p.At) {
			return fmt.Errorf("the program %.50q of the component %.50q at %v must be printable text on one line, within the timeline", p.Name, p.Component, p.At)
		}
	}
	if l.End < l.At || !t.includes(l.End) {
		return fmt.Errorf("it ends at %v, outside of the timeline or before its begin", l.End)
	}
	for cause, length := range l.Wall {
		if string(cause) != ConditionText(string(cause)) || length < 0 {
			return fmt.Errorf("the time %v of the cause %.50q must not be negative", length, cause)
		}
	}
	for _, s := range l.States {
		if string(s.Cause) != ConditionText(string(s.Cause)) || len(s.At) != len(s.Lengths) || len(s.At) > maxTraceLanes {
			return fmt.Errorf("the state %.50q has %d begins and %d lengths; both must be the same number, at most %d", s.Cause, len(s.At), len(s.Lengths), maxTraceLanes)
		}
		for i, begin := range s.At {
			if s.Lengths[i] < 0 || !t.includes(begin) || !t.includes(begin+s.Lengths[i]) {
				return fmt.Errorf("the state %.50q from %v on for %v is outside of the timeline", s.Cause, begin, s.Lengths[i])
			}
		}
	}
	return nil
}
