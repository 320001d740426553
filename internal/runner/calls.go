package runner

import (
	"cmp"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Calls are the calls of an engine during one trial, in the order of their begin.
type Calls struct {
	// Trial is the part of the names of the trial's objects, such as t12 for trial 12.
	Trial string
	result.Cell
	Began  time.Time
	Status result.Status
	Calls  []Call
}

// Call is a call of an engine, or one step of it.
type Call struct {
	// Name is the phase of the call, the phase with a slash and the step, or the removal of an object.
	Name string
	// Start is the time since the begin of the trial. A call is measured whole, with the work before its first step and after its last one.
	Start, Duration time.Duration
	// Err is the error of the call; nil if it worked.
	Err error
}

// called keeps a call until the end of the trial, because a write between two calls would add to the times that span both.
func (t *trial) called(name string, s bench.Span, err error) {
	if t.r.Calls == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, Call{Name: name, Start: s.Start, Duration: s.End - s.Start, Err: err})
}

// passCalls passes the calls to Config.Calls. A call that reached its limit may still go on, and its last steps are then missing.
func (t *trial) passCalls(status result.Status) {
	if t.r.Calls == nil {
		return
	}
	t.mu.Lock()
	calls := slices.Clone(t.calls)
	t.mu.Unlock()
	slices.SortStableFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Duration, a.Duration)) // a call precedes its first step
	})
	t.r.Calls(Calls{Trial: t.name, Cell: cellOf(t.work, t.target), Began: t.began, Status: status, Calls: calls})
}
