package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
)

// place is a component in a step.
type place struct {
	step      uint32
	component monitor.Component
}

// sums are the counts of a trace by place.
type sums struct {
	steps      []string
	components map[uint64]monitor.Component // by program
	byPlace    map[place]*result.TraceCounts
}

// of returns the counts of a program in a step, to be added to.
func (s *sums) of(step uint32, program uint64) *result.TraceCounts {
	p := place{step, s.components[program]}
	if s.byPlace[p] == nil {
		s.byPlace[p] = &result.TraceCounts{Step: s.steps[step], Component: string(p.component), Calls: map[string]int64{}, Programs: map[string]int64{}}
	}
	return s.byPlace[p]
}

// list returns the counts in the order of the steps, and within a step in the order of the components.
func (s *sums) list() (counts []result.TraceCounts) {
	for step := range s.steps {
		for _, c := range monitor.Components() {
			if sum := s.byPlace[place{uint32(step), c}]; sum != nil {
				counts = append(counts, *sum)
			}
		}
	}
	return counts
}

func (t *Tracer) counts() ([]result.TraceCounts, error) {
	list, err := t.programs()
	if err != nil {
		return nil, fmt.Errorf("read the programs of the trace: %w", err)
	}
	s := &sums{t.steps, t.components(list), map[place]*result.TraceCounts{}}
	for i := range list {
		s.of(list[i].Step, list[i].id).Programs[result.ConditionText(list[i].name())]++
	}
	var lostWaits uint64
	if err := t.objects.LostWaits.Get(&lostWaits); err != nil {
		return nil, fmt.Errorf("read the lost waits of the trace: %w", err)
	}
	if err := t.addCounts(s, lostWaits == 0); err != nil {
		return nil, fmt.Errorf("read the counts of the trace: %w", err)
	}
	if lostWaits == 0 {
		if err := t.addTimes(s); err != nil {
			return nil, err
		}
	}
	for _, c := range s.byPlace {
		if t.hasFaults && c.Faults == nil {
			c.Faults = new(int64)
		}
	}
	return s.list(), nil
}

// addCounts adds the counts of the kernel's programs, and the running times if the trace has times.
func (t *Tracer) addCounts(s *sums, isTimed bool) error {
	var key bpfKey
	var count bpfCount
	entries := t.objects.Counts.Iterate()
	for entries.Next(&key, &count) {
		c, number := s.of(key.Step, key.Program), int64(count.Number)
		switch key.Call {
		case callFork:
			c.Processes += number
		case callThread:
			c.Threads += number
		case callFault:
			if c.Faults == nil {
				c.Faults = new(int64)
			}
			*c.Faults += number
		case callOutside:
		default:
			if number > 0 {
				c.Calls[callName(key.Call)] += number
			}
		}
		if isTimed {
			addTime(c, key.Call, result.TraceTime{Running: time.Duration(count.Running)})
		}
	}
	return errors.Join(entries.Err(), t.addUnfinished(s))
}

// addUnfinished adds the calls of threads that were on a CPU at the end of the trace: the kernel's programs add a call when it ends or waits.
func (t *Tracer) addUnfinished(s *sums) error {
	var id uint32
	var thread bpfThread
	entries := t.objects.Threads.Iterate()
	for entries.Next(&id, &thread) {
		if thread.IsNew == 1 {
			s.of(thread.Step, thread.Program).Calls[callName(thread.Call)]++
		}
	}
	return entries.Err()
}

// addTimes adds the waits of threads, cut at the begin of each step, and the division of the steps' own time.
func (t *Tracer) addTimes(s *sums) error {
	spans, err := t.spans()
	if err != nil {
		return err
	}
	for i := range spans {
		w := &spans[i]
		if w.state == running {
			continue
		}
		t.cut(w, func(step uint32, length time.Duration) {
			time := result.TraceTime{Blocked: length}
			if w.state == queued {
				time = result.TraceTime{Queued: length}
			}
			addTime(s.of(step, w.program), w.call, time)
		})
		c := s.of(t.boundaries[t.stepAt(w.begin)].step, w.program)
		switch {
		case w.state == blocked:
			c.Switches++
		case w.isPreempted:
			c.Preemptions++
		}
	}
	for p, length := range wall(spans, t.boundaries, t.end) {
		c := s.of(p.step, p.program)
		if c.Wall == nil {
			c.Wall = map[string]time.Duration{}
		}
		c.Wall[p.name] += time.Duration(length)
	}
	t.timeline, err = t.newTimeline(spans, s.components)
	return err
}

// stepAt is the index of the boundary before a time.
func (t *Tracer) stepAt(moment uint64) int {
	i, isBegin := slices.BinarySearchFunc(t.boundaries, moment, func(b boundary, moment uint64) int { return cmp.Compare(b.time, moment) })
	if isBegin {
		return i
	}
	return max(i-1, 0)
}

// cut divides a span at the begin of each step.
func (t *Tracer) cut(w *span, add func(step uint32, length time.Duration)) {
	for i := t.stepAt(w.begin); i < len(t.boundaries); i++ {
		begin, end := max(w.begin, t.boundaries[i].time), w.end
		if i+1 < len(t.boundaries) {
			end = min(end, t.boundaries[i+1].time)
		}
		if begin >= end {
			return
		}
		add(t.boundaries[i].step, time.Duration(end-begin))
	}
}

// addTime adds to the time of a system call.
func addTime(c *result.TraceCounts, call uint32, t result.TraceTime) {
	name := timeName(call)
	if sum := c.Times[name].Plus(t); sum != (result.TraceTime{}) {
		if c.Times == nil {
			c.Times = map[string]result.TraceTime{}
		}
		c.Times[name] = sum
	}
}

// callName is the name of a system call, or its number if the table has none.
func callName(number uint32) string {
	if number == callCompat {
		return "32-bit"
	}
	return syscalls.Name(number)
}

// timeName is the name of a system call in times.
func timeName(number uint32) string {
	if number == callOutside {
		return result.OutsideCalls
	}
	return callName(number)
}
