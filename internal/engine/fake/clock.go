package fake

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock is a clock that only its methods move. It replaces the runner's clock: measurements on it are exact, and a limit of
// an hour passes at once.
//
// Time moves in one goroutine at a time: two parallel calls of 5 ms take 10 ms, in an order that the scheduler chooses.
// Events (a deadline, the exit of a process) happen in order of time while the clock passes them, and see their own moment
// in Now.
type Clock struct {
	moving sync.Mutex // held while time moves and while events happen

	mu     sync.Mutex
	now    time.Time
	events []*event // by time; events of one moment are in order of creation
}

type event struct {
	at     time.Time
	happen func()
}

// NewClock returns a clock at the beginning of 2026, UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Real is Now.
func (c *Clock) Real() time.Time { return c.Now() }

// Advance moves time forward by d, past all deadlines in between.
func (c *Clock) Advance(d time.Duration) {
	_ = c.spend(context.Background(), d)
}

// WithTimeoutCause is context.WithTimeoutCause on this clock, with two differences. The context's Err is context.Canceled, so
// only its Cause identifies a deadline. Its Deadline is not set, because callers would compare it with the machine's
// clock.
func (c *Clock) WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	limitCtx, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		cancel(cause)
		return limitCtx, func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := c.at(c.now.Add(d), func() { cancel(cause) })
	return limitCtx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Every calls f each time that d has passed, while the clock passes these moments. Like all events, f must not move the clock.
func (c *Clock) Every(d time.Duration, f func()) (stop func()) {
	return c.repeat(func() time.Duration { return d }, f)
}

// repeat is Every with a time that may change: interval returns the time until the next call.
func (c *Clock) repeat(interval func() time.Duration, f func()) (stop func()) {
	var mu sync.Mutex
	var cancel func()
	isStopped := false
	var next func()
	schedule := func() { _, cancel = c.after(interval(), next) }
	next = func() {
		mu.Lock()
		defer mu.Unlock()
		if !isStopped {
			f()
			schedule()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	schedule()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		isStopped = true
		cancel()
	}
}

// Sleep lets the time d pass. It returns early, with the cause, when the context ends.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error { return c.spend(ctx, d) }

// spend lets the time d of a call pass. It returns early, with the cause, when the context ends.
func (c *Clock) spend(ctx context.Context, d time.Duration) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	return c.move(ctx, c.Now().Add(d))
}

// reach lets the time until t pass, if t is in the future. It returns early like spend.
func (c *Clock) reach(ctx context.Context, t time.Time) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	return c.move(ctx, t)
}

// hang returns when the context has ended. Meanwhile time passes to the deadline that ends it, or to the last event of this
// clock.
func (c *Clock) hang(ctx context.Context) error {
	c.moving.Lock()
	for ctx.Err() == nil && c.next(nil) {
	}
	c.moving.Unlock()
	<-ctx.Done()
	return context.Cause(ctx)
}

// move goes from event to event, because any of them may end the context. The caller holds moving.
func (c *Clock) move(ctx context.Context, t time.Time) error {
	for ctx.Err() == nil && c.next(&t) {
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Before(t) {
		c.now = t
	}
	return nil
}

// next lets the next event happen, unless it is later than limit, which may be nil. It reports whether an event happened. The
// caller holds moving.
func (c *Clock) next(limit *time.Time) bool {
	c.mu.Lock()
	if len(c.events) == 0 || limit != nil && c.events[0].at.After(*limit) {
		c.mu.Unlock()
		return false
	}
	e := c.events[0]
	c.events = c.events[1:]
	if c.now.Before(e.at) {
		c.now = e.at
	}
	c.mu.Unlock()
	e.happen()
	return true
}

// after schedules a call of happen when d has passed, and returns that moment; stop cancels it. The call sees the clock at
// that moment, and must not move it.
func (c *Clock) after(d time.Duration, happen func()) (moment time.Time, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moment = c.now.Add(d)
	return moment, c.at(moment, happen)
}

// at schedules an event. The caller holds mu.
func (c *Clock) at(t time.Time, happen func()) (stop func()) {
	e := &event{at: t, happen: happen}
	i, _ := slices.BinarySearchFunc(c.events, t, func(entry *event, t time.Time) int {
		if entry.at.After(t) {
			return 1
		}
		return -1
	})
	c.events = slices.Insert(c.events, i, e)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = slices.DeleteFunc(c.events, func(entry *event) bool { return entry == e })
	}
}
