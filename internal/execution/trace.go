package execution

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/touchstone-bench/touchstone/internal/runner"
)

// trace writes the calls of a trial. The first failure of a write ends the trace, and is a note.
func (e *Execution) trace(ctx context.Context, c runner.Calls) {
	if e.Trace == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for _, call := range c.Calls {
		level := slog.LevelInfo
		if call.Err != nil {
			level = slog.LevelError
		}
		r := slog.NewRecord(c.Began.Add(call.Start), level, call.Name, 0)
		r.AddAttrs(
			slog.String("run", e.RunID), slog.String("trial", c.Trial), slog.String("benchmark", c.Benchmark), slog.String("params", c.Params),
			slog.String("target", c.Target), slog.String("trial_status", string(c.Status)),
			slog.Int64("start_ns", int64(call.Start)), slog.Int64("duration_ns", int64(call.Duration)),
		)
		if call.Err != nil {
			r.AddAttrs(slog.String("error", e.shown.Text(call.Err.Error())))
		}
		if err := e.Trace.Handle(ctx, r); err != nil {
			e.Trace = nil
			e.report(Note, fmt.Sprintf("the trace of calls ends here: %v", err))
			return
		}
	}
}
