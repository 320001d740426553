// Package meter has the clock of all measurements, and the reader that stamps a program's output by it.
//
// It is the only package of the runner that reads the time. Everything else takes a [Clock], so that the fake engine can move it.
package meter

import (
	"context"
	"sync"
	"time"
)

// Clock is the only clock of all measurements. Its readings are monotonic: only their differences are meaningful.
type Clock interface {
	Now() time.Time
	// Real is the time of day on the real-time clock, which may be set at any moment. It serves only to convert times of other programs: see
	// Pair.
	Real() time.Time
	// WithTimeoutCause is context.WithTimeoutCause on this clock.
	WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
	// Every calls f each time that d has passed, one call at a time, until stop is called. A late call is left out. stop waits for a
	// call in progress, and is idempotent. f must not call it.
	Every(d time.Duration, f func()) (stop func())
	// Sleep returns after the time d, or early with the context's cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// System is the host's CLOCK_MONOTONIC.
type System struct{}

// Now reads the clock.
func (System) Now() time.Time { return time.Now() }

// Real reads the real-time clock.
func (System) Real() time.Time { return time.Now().Round(0) }

// WithTimeoutCause is context.WithTimeoutCause.
func (System) WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}

// Every calls f in a goroutine of its own.
func (System) Every(d time.Duration, f func()) (stop func()) {
	ticker := time.NewTicker(d)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
				f()
			case <-end:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		ticker.Stop()
		close(end)
		<-done
	})
}

// Sleep waits for a timer.
func (System) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
