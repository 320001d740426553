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

func TestDeadlines(t *testing.T) {
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
	clock.Advance(-time.Hour) // it never goes back
	clock.Advance(25 * ms)
	stop()
	stop()
	clock.Advance(time.Hour)
	if want := []time.Duration{10 * ms, 20 * ms, 30 * ms}; !slices.Equal(moments, want) {
		t.Errorf("calls at %v, want %v", moments, want)
	}
}
