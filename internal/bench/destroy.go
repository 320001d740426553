package bench

import (
	"context"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Destroy kills a running container, waits for its exit and deletes it, as the phases kill, exit and delete. It returns
// the sum of the three phases, and the span from the begin of the first to the end of the last.
func Destroy(ctx context.Context, t Trial, c engine.Container) (time.Duration, Span, error) {
	kill, err := t.Time(ctx, "kill", func(ctx context.Context) error { return c.Kill(ctx, syscall.SIGKILL) })
	if err != nil {
		return 0, Span{}, err
	}
	exit, err := t.Time(ctx, "exit", func(ctx context.Context) error {
		_, err := c.Wait(ctx)
		return err
	})
	if err != nil {
		return 0, Span{}, err
	}
	remove, err := t.Time(ctx, "delete", c.Delete)
	return kill.Length() + exit.Length() + remove.Length(), Span{Start: kill.Start, End: remove.End}, err
}
