package limits

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// mark is what had been used at a moment, from which on a limit is in force.
type mark struct {
	at    time.Duration // on the trial's clock
	used  spent
	held  heldBack
	limit float64 // in CPUs
}

// heldBack is how often a limit of CPU time has kept a trial's processes waiting.
type heldBack struct {
	periods int64
	known   bool
}

// mark notes what has been used so far.
func (p *progress) mark(ctx context.Context, limit float64) error {
	_, at, err := heard(p.t).FirstLine(ctx)
	if err != nil {
		return err
	}
	m := mark{at: at, limit: limit}
	if m.used, err = usage(p.t); err != nil {
		return err
	}
	m.used.cpu -= p.calls
	if m.held.periods, err = p.t.Throttled(); err != nil && !engine.Unsupported(err) {
		return err
	}
	m.held.known = err == nil
	p.marks = append(p.marks, m)
	return nil
}

// called notes what calls of the runtime have used so far, where that cannot be told from the container's: all that was used
// between the last mark, which is without earlier calls, and the end of the call.
func (p *progress) called() error {
	before := p.marks[len(p.marks)-1].used
	if !before.known || before.alone {
		return nil
	}
	after, err := usage(p.t)
	if err != nil || !after.known {
		return err
	}
	p.calls = after.cpu - before.cpu
	return nil
}

// stretch is a time under known limits, and what was used in it.
type stretch struct {
	seconds       float64
	allowed, used float64 // CPU time in seconds
	known         bool    // of what was used
	held          heldBack
}

// leastStretch is how long a stretch is at least, in seconds: a quota that is used up at once says little of a limit.
const leastStretch = 0.9

// stretches gives the time from the first output on in stretches of about a second. A second that was heard of late makes
// the next one short, which belongs to the stretch of the one that follows.
func (p *progress) stretches() []stretch {
	var all []stretch
	whole := stretch{known: true, held: heldBack{known: true}}
	s := whole
	for i := 1; i < len(p.marks); i++ {
		last, next := p.marks[i-1], p.marks[i]
		seconds := (next.at - last.at).Seconds()
		s.seconds += seconds
		s.allowed += last.limit * seconds
		s.used += (next.used.cpu - last.used.cpu).Seconds()
		s.known = s.known && last.used.known && next.used.known && last.used.alone == next.used.alone
		periods := next.held.periods - last.held.periods // fewer if what counted them is gone
		s.held.periods += periods
		s.held.known = s.held.known && last.held.known && next.held.known && periods >= 0
		if s.seconds >= leastStretch {
			all = append(all, s)
			s = whole
		}
	}
	return all
}

// most is the most that was used in a stretch, over what was allowed.
func most(stretches []stretch) (ratio float64, known bool) {
	for _, s := range stretches {
		if s.known && s.used > 0 { // a count that has not moved is none
			ratio, known = max(ratio, s.used/s.allowed), true
		}
	}
	return ratio, known
}

// starved tells whether the host did not give what the limits allow: less was used, and no limit that is in force held
// the program back, be it the right one or another. Where that is not known, it counts only what the first limit
// allows, which an engine that ignores all others gives as well.
func (p *progress) starved(stretches []stretch) bool {
	for _, s := range stretches {
		least := s.allowed
		switch {
		case !s.known || s.used == 0:
			continue
		case !s.held.known:
			least = p.first * s.seconds
		case float64(s.held.periods) >= s.seconds*periods/2:
			continue
		}
		if s.used < 0.85*least {
			return true
		}
	}
	return false
}
