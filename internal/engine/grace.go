package engine

import (
	"context"
	"time"
)

// UndoLimit is the deadline for clean-up after the caller's context has ended.
const UndoLimit = 20 * time.Second

// WithUndoLimit returns a context for clean-up, which may go on after the end of ctx.
func WithUndoLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), UndoLimit)
}

// Undo removes a container whose creation failed or was cancelled, or a test container.
func Undo(ctx context.Context, c Container) error {
	ctx, cancel := WithUndoLimit(ctx)
	defer cancel()
	return c.Delete(ctx)
}

// WithGracePeriod returns a context that outlives ctx by the limit. It is for calls that change something: the engine
// carries on with a request after its caller has given up, and only the response names the objects to remove. A
// command that is killed halfway may leave objects that no other command can find.
func WithGracePeriod(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late, end := context.WithTimeout(inner, limit)
		defer end()
		<-late.Done()
		cancel(context.Cause(ctx))
	})
	return inner, func() {
		stop()
		cancel(nil)
	}
}

// Ended reports whether a channel is closed.
func Ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Await returns when a channel is closed. If ctx ends before, the error is its cause. A channel that is already closed counts
// even if ctx has ended.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if Ended(done) {
			return nil
		}
		return context.Cause(ctx)
	}
}
