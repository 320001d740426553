package fake_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
)

const ms = time.Millisecond

func TestClockStandsStill(t *testing.T) {
	a, b := fake.NewClock(), fake.NewClock()
	if !a.Now().Equal(b.Now()) || a.Now().IsZero() {
		t.Errorf("new clocks are at %v and %v", a.Now(), b.Now())
	}
	start := a.Now()
	a.Advance(3 * ms)
	a.Advance(-ms)
	if got := a.Now().Sub(start); got != 3*ms {
		t.Errorf("the clock moved by %v, want 3ms", got)
	}
}

func TestDeadlines(t *testing.T) {
	cause := errors.New("too long")
	clock := fake.NewClock()
	ctx, cancel := clock.WithTimeoutCause(t.Context(), 10*ms, cause)
	defer cancel()
	child, cancelChild := context.WithCancel(ctx)
	defer cancelChild()

	clock.Advance(9 * ms)
	if ctx.Err() != nil {
		t.Fatalf("the context ended early: %v", context.Cause(ctx))
	}
	clock.Advance(ms)
	for _, c := range []context.Context{ctx, child} {
		if c.Err() == nil || !errors.Is(context.Cause(c), cause) {
			t.Errorf("after the deadline Err = %v, Cause = %v; want %v", c.Err(), context.Cause(c), cause)
		}
	}
}

func TestDeadlineDefaults(t *testing.T) {
	clock := fake.NewClock()
	passed, cancel := clock.WithTimeoutCause(t.Context(), 0, nil)
	defer cancel()
	if !errors.Is(context.Cause(passed), context.DeadlineExceeded) {
		t.Errorf("cause of a passed deadline = %v", context.Cause(passed))
	}
	ctx, cancel := clock.WithTimeoutCause(t.Context(), ms, errors.New("too long"))
	cancel()
	clock.Advance(ms)
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause of a context cancelled before its deadline = %v", context.Cause(ctx))
	}
}

func TestCallsAtIntervals(t *testing.T) {
	clock := fake.NewClock()
	start := clock.Now()
	var moments []time.Duration
	stop := clock.Every(10*ms, func() { moments = append(moments, clock.Now().Sub(start)) })
	clock.Advance(9 * ms)
	clock.Advance(25 * ms)
	stop()
	stop()
	clock.Advance(time.Hour)
	if want := []time.Duration{10 * ms, 20 * ms, 30 * ms}; !slices.Equal(moments, want) {
		t.Errorf("calls at %v, want %v", moments, want)
	}
}
