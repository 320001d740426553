package engine

import (
	"context"
	"errors"
)

// Stopwatch times a step. It makes the call and returns the call's error. The empty name stands for the method's own call, which
// needs no name beside the method's.
type Stopwatch func(step string, call func() error) error

type stopwatchKey struct{}

// WithStopwatch gives engines a stopwatch for the steps of one method.
func WithStopwatch(ctx context.Context, s Stopwatch) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, s)
}

// Step makes one of the calls that a method of an engine consists of, such as CRI's RunPodSandbox and CreateContainer
// in Create. Steps follow each other and do not nest. Their names are the names of the engine's own interface.
//
// The steps of a method bound its time: it lasts from the begin of the first step to the end of the last one. An
// engine's own work before and after (a bundle, a request, a confirmation) is not measured. Engines keep no time
// themselves: without a stopwatch in the context, Step only makes the call. A method without steps is measured whole.
func Step(ctx context.Context, name string, call func() error) error {
	if time, ok := ctx.Value(stopwatchKey{}).(Stopwatch); ok {
		return time(name, call)
	}
	return call()
}

// Call is Step for the only call of a method, such as the start of a runtime's command. It is not recorded apart from the
// method.
func Call(ctx context.Context, call func() error) error { return Step(ctx, "", call) }

// ErrRefused is in the error of a step that had no effect, because the daemon did not know the state of the container yet. The method
// repeats the step, and the refused one bounds no time.
var ErrRefused = errors.New("refused without an effect")

type tracerKey struct{}

// WithTracer gives engines a function that they call before each request to a daemon, with the request's name. By it the
// conformance suite finds requests outside of steps.
func WithTracer(ctx context.Context, trace func(request string)) context.Context {
	return context.WithValue(ctx, tracerKey{}, trace)
}

// Trace reports a request to the tracer of the context, if it has one. Clients call it for every request. Requests by
// net/http and starts of processes need no report: net/http/httptrace and process.Launcher.Started show them.
func Trace(ctx context.Context, request string) {
	if trace, ok := ctx.Value(tracerKey{}).(func(request string)); ok {
		trace(request)
	}
}
