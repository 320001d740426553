package bench

import (
	"context"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Destroy kills a running container, waits for its end and deletes it, as the phases
// kill, exit and delete. The span goes from the first to the last.
func Destroy(ctx context.Context, t Trial, c engine.Container) (Span, error) {
	kill, err := t.Time(ctx, "kill", func(ctx context.Context) error { return c.Kill(ctx, syscall.SIGKILL) })
	if err != nil {
		return Span{}, err
	}
	_, err = t.Time(ctx, "exit", func(ctx context.Context) error {
		_, err := c.Wait(ctx)
		return err
	})
	if err != nil {
		return Span{}, err
	}
	remove, err := t.Time(ctx, "delete", c.Delete)
	return Span{Start: kill.Start, End: remove.End}, err
}
