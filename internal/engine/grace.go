package engine

import (
	"context"
	"time"
)

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
