package engine

import (
	"context"
	"time"
)

// Patient gives a context for a call that changes something: when ctx ends the call has the limit's time to end
// in order. An engine goes on with what it was asked for, and only its answer tells what there is to remove; a
// command that is killed half-way may leave what no other command can find.
func Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
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
