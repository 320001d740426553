package runner

import (
	"context"
	"time"
)

// Clock is the only clock of all measurements. Its readings are monotonic: only their differences are meaningful.
type Clock interface {
	Now() time.Time
	// WithTimeoutCause is context.WithTimeoutCause on this clock.
	WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
}

// SystemClock is the host's CLOCK_MONOTONIC.
type SystemClock struct{}

// Now reads the clock.
func (SystemClock) Now() time.Time { return time.Now() }

// WithTimeoutCause is context.WithTimeoutCause.
func (SystemClock) WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}
