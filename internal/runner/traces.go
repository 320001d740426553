package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// searchTraces returns an error if a container still exists after its Delete has returned success: a delete that does nothing would be the
// fastest of all. It comes after the measurements of the trial, so that its own cost is in none of them.
func (t *trial) searchTraces(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, c := range t.containers {
		traced, ok := c.(engine.Traced)
		if !ok {
			continue
		}
		var left []string
		err := t.bounded(ctx, "the search for traces of a deleted container", func(ctx context.Context) (err error) {
			left, err = traced.Traces(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("delete of container %q returned success without deleting it: want nothing of it, got %s", c.ID(), strings.Join(left, "; "))
		}
	}
	return nil
}
