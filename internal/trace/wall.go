package trace

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// boundary is the begin of a step.
type boundary struct {
	time uint64
	step uint32
}

// part is a share of a step's own time.
type part struct {
	step    uint32
	program uint64
	name    string // in result.TraceCounts.Wall
}

// wall divides the time of each step among the causes: each moment belongs to the threads that run, else to those that wait for a CPU, else to
// the wait that held up the target. A moment without such a thread has no part: the target waits for a program outside.
func wall(spans []span, boundaries []boundary, end uint64) map[part]float64 {
	parts := map[part]float64{}
	eachMoment(spans, crowdedProcesses(spans), boundaries, end, func(step int, begin, end uint64, list []*span, name string) {
		for _, s := range list {
			parts[part{boundaries[step].step, s.program, name}] += float64(end-begin) / float64(len(list))
		}
	})
	return parts
}

// eachMoment calls do for each time without a change, with the index of its step, the threads that it belongs to, and the name of the part. It sorts the spans.
func eachMoment(spans []span, crowds map[uint32]bool, boundaries []boundary, end uint64, do func(step int, begin, end uint64, list []*span, name string)) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	cuts := []uint64{end}
	for _, s := range spans {
		cuts = append(cuts, s.begin, s.end)
	}
	for _, b := range boundaries {
		cuts = append(cuts, b.time)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var active []*span
	step, next := -1, 0
	for i, cut := range cuts[:len(cuts)-1] {
		for step+1 < len(boundaries) && boundaries[step+1].time <= cut {
			step++
		}
		active = slices.DeleteFunc(active, func(s *span) bool { return s.end <= cut })
		for ; next < len(spans) && spans[next].begin <= cut; next++ {
			active = append(active, &spans[next])
		}
		if step < 0 {
			continue
		}
		stepEnd := end
		if step+1 < len(boundaries) {
			stepEnd = boundaries[step+1].time
		}
		list, name := owners(active, crowds, stepEnd)
		do(step, cut, cuts[i+1], list, name)
	}
}

// crowdedProcesses are the processes with several threads. A sleep of one of them is no reason: Go's runtime has a thread that sleeps and looks in turn.
func crowdedProcesses(spans []span) map[uint32]bool {
	crowds := map[uint32]bool{}
	first := map[uint32]uint32{}
	for i := range spans {
		s := &spans[i]
		if thread, ok := first[s.process]; !ok {
			first[s.process] = s.thread
		} else if thread != s.thread {
			crowds[s.process] = true
		}
	}
	return crowds
}

// owners returns the threads that a moment belongs to, with the name of the part.
func owners(active []*span, crowds map[uint32]bool, stepEnd uint64) ([]*span, string) {
	if list := inState(active, running); list != nil {
		return list, result.WallRunning
	}
	if list := inState(active, queued); list != nil {
		return list, result.WallQueue
	}
	var reason *span
	isReasonPassive := false
	for _, s := range active {
		cause := result.CauseOf(timeName(s.call))
		if s.isOpen || s.end > stepEnd || cause == result.CauseSleep && crowds[s.process] {
			continue
		}
		isPassive := cause.Passive()
		if reason == nil || isReasonPassive && !isPassive || isReasonPassive == isPassive && s.end < reason.end {
			reason, isReasonPassive = s, isPassive
		}
	}
	if reason == nil {
		return nil, ""
	}
	return []*span{reason}, timeName(reason.call)
}

// inState lists the spans of a state.
func inState(active []*span, s state) (list []*span) {
	for _, a := range active {
		if a.state == s {
			list = append(list, a)
		}
	}
	return list
}
