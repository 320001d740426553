package limits

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// mark is the usage so far at the time when a limit comes into force.
type mark struct {
	at        time.Duration // on the trial's clock
	used      cpuCount
	throttled throttling
	limit     float64 // in CPUs
}

// throttling counts the quota periods with throttled processes of a trial.
type throttling struct {
	periods int64
	known   bool
}

// mark reads the usage so far.
func (p *progress) mark(ctx context.Context, limit float64) error {
	_, at, err := timestamp(p.t).FirstLine(ctx)
	if err != nil {
		return err
	}
	m := mark{at: at, limit: limit}
	if m.used, err = countCPU(p.t); err != nil {
		return err
	}
	m.used.cpu -= p.calls
	if m.throttled.periods, err = p.t.Cost.Throttled(); err != nil && !engine.Unsupported(err) {
		return err
	}
	m.throttled.known = err == nil
	p.marks = append(p.marks, m)
	return nil
}

// countCall counts the CPU time of calls of the runtime if it cannot be separated from the container's: all CPU time between
// the last mark, which excludes earlier calls, and the end of the call.
func (p *progress) countCall() error {
	before := p.marks[len(p.marks)-1].used
	if !before.known || before.exact {
		return nil
	}
	after, err := countCPU(p.t)
	if err != nil || !after.known {
		return err
	}
	p.calls = after.cpu - before.cpu
	return nil
}

// interval is a time under known limits with its usage.
type interval struct {
	seconds       float64
	allowed, used float64 // CPU time in seconds
	known         bool    // used is known
	throttled     throttling
}

// leastInterval is the minimum length of an interval in seconds: a quota that is exhausted at once proves little about a
// limit.
const leastInterval = 0.9

// intervals splits the time after the first output into intervals of about a second. A late report of a second makes the
// next one short; the short one is merged with its successor.
func (p *progress) intervals() []interval {
	var all []interval
	empty := interval{known: true, throttled: throttling{known: true}}
	s := empty
	for i := 1; i < len(p.marks); i++ {
		last, next := p.marks[i-1], p.marks[i]
		seconds := (next.at - last.at).Seconds()
		s.seconds += seconds
		s.allowed += last.limit * seconds
		s.used += (next.used.cpu - last.used.cpu).Seconds()
		s.known = s.known && last.used.known && next.used.known && last.used.exact == next.used.exact
		periods := next.throttled.periods - last.throttled.periods // negative if a counted cgroup was removed
		s.throttled.periods += periods
		s.throttled.known = s.throttled.known && last.throttled.known && next.throttled.known && periods >= 0
		if s.seconds >= leastInterval {
			all = append(all, s)
			s = empty
		}
	}
	return all
}

// mostUsed is the highest ratio of used to allowed CPU time in an interval.
func mostUsed(intervals []interval) (ratio float64, known bool) {
	for _, s := range intervals {
		if s.known && s.used > 0 { // a counter that has not changed is not valid
			ratio, known = max(ratio, s.used/s.allowed), true
		}
	}
	return ratio, known
}

// starved reports whether the host did not grant the CPU time that the limits allow: the program used less, and no limit
// throttled it, neither the right one nor another. If throttling is unknown only the first limit counts, which even an
// engine that ignores all later ones grants.
func (p *progress) starved(intervals []interval) bool {
	for _, s := range intervals {
		least := s.allowed
		switch {
		case !s.known || s.used == 0:
			continue
		case !s.throttled.known:
			least = p.first * s.seconds
		case float64(s.throttled.periods) >= s.seconds*periods/2:
			continue
		}
		if s.used < 0.85*least {
			return true
		}
	}
	return false
}
