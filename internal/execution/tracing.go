package execution

import (
	"context"
	"errors"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/trace"
)

// NotTraced begins the caveat of a run without the traces of its plan. The reason follows.
const NotTraced = "no trial was traced: "

// tracing configures the traces of benchmarks that need them, and those that the plan adds. A machine that cannot trace has none of the latter, and
// untraced is the reason.
func (e *Execution) tracing(ctx context.Context, run result.Run) runner.Tracing {
	config := runner.Tracing{
		Count: e.Plan.Trace, Done: run.Traces,
		Start: func(target monitor.Target) (runner.Tracer, error) {
			start := trace.Start
			if e.Plan.TracePaths {
				start = trace.StartWithPaths
			}
			return startTracer(e, tracer, target, start)
		},
		StartFunctions: func(target monitor.Target) (runner.Tracer, error) {
			return startTracer(e, functionTracer, target, trace.StartFunctions)
		},
		Record: func(t result.Trace) error {
			return e.Store.AppendTrace(context.WithoutCancel(ctx), e.RunID, e.secrets.Trace(t))
		},
	}
	if config.Count == 0 {
		return config
	}
	err := e.traceable()
	if err == nil {
		err = trace.Check()
	}
	if err != nil {
		e.untraced = []string{NotTraced + err.Error()}
		e.report(Note, e.untraced[0])
		config.Count = 0
	}
	return config
}

// The missing parts of a machine that cannot trace.
const (
	tracer         = "a trace of system calls"
	functionTracer = "a trace of functions of the kernel"
)

// startTracer starts a tracer. The error is an *engine.UnsupportedError if this machine lacks the part.
func startTracer[T runner.Tracer](e *Execution, part string, target monitor.Target, start func(monitor.Target) (T, error)) (runner.Tracer, error) {
	if err := e.traceable(); err != nil {
		return nil, &engine.UnsupportedError{What: part, Reason: err.Error()}
	}
	t, err := start(target)
	if reason, ok := errors.AsType[*trace.Error](err); ok {
		return nil, &engine.UnsupportedError{What: part, Reason: reason.Cause, Advice: reason.Remedy}
	}
	return t, err
}

// traceable returns an error if the processes of the targets are not on this machine.
func (e *Execution) traceable() error {
	switch {
	case e.isFake:
		return errors.New("fake targets have no processes")
	case e.session == nil:
		return errors.New("the processes of pods are not visible to an agent")
	}
	return nil
}
