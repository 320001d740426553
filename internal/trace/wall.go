package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// waitCause is the cause of a wait, as far as the system call decides it.
func waitCause(call uint32) result.TimeCause {
	if call == callOutside {
		return result.CauseFault
	}
	switch callName(call) {
	case "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync":
		return result.CauseDisk
	case "nanosleep", "clock_nanosleep":
		return result.CauseSleep
	case "futex", "futex_wait", "futex_waitv":
		return result.CauseFutex
	case "wait4", "waitid", "vfork", "clone", "clone3":
		return result.CauseChild
	case "read", "readv", "write", "writev", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "splice", "tee", "sendfile",
		"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "accept", "accept4", "connect":
		return result.CausePipe
	case "pause", "rt_sigsuspend", "rt_sigtimedwait":
		return result.CauseSignal
	default:
		return result.CauseCall
	}
}

// isPassive reports whether a wait of this cause mostly is one for another thread of the target, whose own state is the reason then.
func isPassive(cause result.TimeCause) bool {
	switch cause {
	case result.CauseFutex, result.CauseChild, result.CauseSignal, result.CausePipe:
		return true
	default:
		return false
	}
}

// boundary is the begin of a step.
type boundary struct {
	time uint64
	step uint32
}

// part is a cause within a step.
type part struct {
	step    uint32
	program uint64
	cause   result.TimeCause
}

// wall divides the time of each step among the causes: each moment belongs to the threads that run, else to those that wait for a CPU, else to
// the wait that held up the target. A moment without such a thread has no part: the target waits for a program outside.
func wall(spans []span, boundaries []boundary, end uint64) map[part]float64 {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	shared := sharedProcesses(spans)
	cuts := []uint64{end}
	for _, s := range spans {
		cuts = append(cuts, s.begin, s.end)
	}
	for _, b := range boundaries {
		cuts = append(cuts, b.time)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	parts := map[part]float64{}
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
		owners, cause := owners(active, shared, stepEnd)
		for _, s := range owners {
			parts[part{boundaries[step].step, s.program, cause}] += float64(cuts[i+1]-cut) / float64(len(owners))
		}
	}
	return parts
}

// sharedProcesses are the processes with several threads. A sleep of one of them is no reason: Go's runtime has a thread that sleeps and looks in turn.
func sharedProcesses(spans []span) map[uint32]bool {
	shared := map[uint32]bool{}
	first := map[uint32]uint32{}
	for i := range spans {
		s := &spans[i]
		if thread, ok := first[s.process]; !ok {
			first[s.process] = s.thread
		} else if thread != s.thread {
			shared[s.process] = true
		}
	}
	return shared
}

// owners returns the threads that a moment belongs to, with the cause.
func owners(active []*span, shared map[uint32]bool, stepEnd uint64) ([]*span, result.TimeCause) {
	if list := inState(active, running); list != nil {
		return list, result.CauseRunning
	}
	if list := inState(active, queued); list != nil {
		return list, result.CauseQueue
	}
	var reason *span
	rank := math.MaxInt
	for _, s := range active {
		cause := waitCause(s.call)
		if s.isOpen || s.end > stepEnd || cause == result.CauseSleep && shared[s.process] {
			continue
		}
		class := 0
		if isPassive(cause) {
			class = 1
		}
		if class < rank || class == rank && s.end < reason.end {
			reason, rank = s, class
		}
	}
	if reason == nil {
		return nil, ""
	}
	return []*span{reason}, waitCause(reason.call)
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
