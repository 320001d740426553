package trace

import (
	"cmp"
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
		s.byPlace[p] = &result.TraceCounts{Step: s.steps[step], Component: string(p.component), Calls: map[string]int64{}, Programs: map[string]int64{}, Opens: map[string]int64{}}
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
	if err := t.addCounts(s); err != nil {
		return nil, fmt.Errorf("read the counts of the trace: %w", err)
	}
	if err := t.addPaths(s); err != nil {
		return nil, fmt.Errorf("read the paths of the trace: %w", err)
	}
	if lostWaits == 0 {
		if err := t.addTimes(s); err != nil {
			return nil, err
		}
	}
	return s.list(), nil
}

// addCounts adds the counts of the kernel's programs.
func (t *Tracer) addCounts(s *sums) error {
	var slot uint32
	var key bpfKey
	var counts bpfCounts
	entries := t.objects.Owners.Iterate()
	for entries.Next(&slot, &key) {
		if err := t.objects.Counts.Lookup(slot, &counts); err != nil {
			return err
		}
		if counts == (bpfCounts{}) {
			continue
		}
		c := s.of(key.Step, key.Program)
		c.Processes += int64(counts.Processes)
		c.Threads += int64(counts.Threads)
		c.Faults += int64(counts.Work.Faults)
		c.BytesRead += int64(counts.Work.Read)
		c.BytesWritten += int64(counts.Work.Written)
		c.CgroupWrites += int64(counts.CgroupWrites)
		c.NetlinkMessages += int64(counts.NetlinkMessages)
		for i, number := range counts.Opens {
			if number > 0 {
				c.Opens[directoryName(uint64(i))] += int64(number)
			}
		}
		for i, number := range counts.Calls {
			if number > 0 {
				c.Calls[indexName(uint32(i))] += int64(number)
			}
		}
	}
	return entries.Err()
}

// addPaths adds the paths of opened files. A trace with more than its buffer has places for has none.
func (t *Tracer) addPaths(s *sums) error {
	var lostPaths uint64
	if err := t.objects.LostPaths.Get(&lostPaths); err != nil || lostPaths > 0 || !t.hasPaths {
		return err
	}
	openings, err := records[bpfOpening](t.objects.Paths)
	if err != nil {
		return err
	}
	for i := range openings {
		var key bpfKey
		if err := t.objects.Owners.Lookup(openings[i].Slot, &key); err != nil {
			return err
		}
		c := s.of(key.Step, key.Program)
		if c.Paths == nil {
			c.Paths = map[string]int64{}
		}
		c.Paths[cmp.Or(result.ConditionText(text(openings[i].Path[:])), noPath)]++
	}
	return nil
}

// noPath stands for the empty path, which no file has.
const noPath = "(empty)"

// addTimes adds the waits of threads, cut at the begin of each step, and the division of the steps' own time.
func (t *Tracer) addTimes(s *sums) error {
	spans, err := t.spans()
	if err != nil {
		return err
	}
	for i := range spans {
		w := &spans[i]
		t.cut(w, func(step uint32, length time.Duration) { addTime(s.of(step, w.program), w, length) })
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

// addTime adds a part of a span.
func addTime(c *result.TraceCounts, w *span, length time.Duration) {
	switch w.state {
	case running:
		c.Running += length
	case queued:
		c.Queued += length
	case blocked:
		if c.Blocked == nil {
			c.Blocked = map[string]time.Duration{}
		}
		c.Blocked[timeName(w.call)] += length
	}
}

// indexName is the name of the system calls with an index of the counts.
func indexName(index uint32) string {
	switch index {
	case indexCompat:
		return compatName
	case indexUnknown:
		return "unknown"
	}
	return syscalls.Name(index)
}

// compatName is the name of all system calls of 32-bit programs.
const compatName = "32-bit"

// timeName is the name of the system call of a wait.
func timeName(number uint32) string {
	switch number {
	case callOutside:
		return result.OutsideCalls
	case callCompat:
		return compatName
	}
	return syscalls.Name(number)
}
