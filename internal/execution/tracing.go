package execution

import (
	"context"
	"errors"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/trace"
)

// NotTraced begins the caveat of a run without the traces of its plan. The reason follows.
const NotTraced = "no trial was traced: "

// tracing returns the traces that the plan adds. A machine that cannot trace has none, and untraced is the reason.
func (e *Execution) tracing(ctx context.Context, run result.Run) runner.Tracing {
	if e.Plan.Trace == 0 {
		return runner.Tracing{}
	}
	var reason error
	switch {
	case e.isFake:
		reason = errors.New("fake targets have no processes")
	case e.session == nil:
		reason = errors.New("the processes of pods are not visible to an agent")
	default:
		reason = trace.Check()
	}
	if reason != nil {
		e.untraced = []string{NotTraced + reason.Error()}
		e.report(Note, e.untraced[0])
		return runner.Tracing{}
	}
	return runner.Tracing{
		Count: e.Plan.Trace, Done: run.Traces,
		Start: func(target monitor.Target) (runner.Tracer, error) { return trace.Start(target) },
		Record: func(t result.Trace) error {
			return e.Store.AppendTrace(context.WithoutCancel(ctx), e.RunID, e.secrets.Trace(t))
		},
	}
}
