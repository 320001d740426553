package engine

import "context"

// Stopwatch times a step: it makes the call and returns its error.
type Stopwatch func(step string, call func() error) error

type stopwatchKey struct{}

// WithStopwatch gives engines a stopwatch for the steps of the method that the context goes to.
func WithStopwatch(ctx context.Context, s Stopwatch) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, s)
}

// Step makes one of several calls that a method of an engine consists of, such as CRI's
// RunPodSandbox and CreateContainer in Create. Steps carry the names that users know from the
// engine's interface. They follow each other and do not nest. The engine itself keeps no time: if
// the context has a stopwatch it is the caller's.
func Step(ctx context.Context, name string, call func() error) error {
	if time, ok := ctx.Value(stopwatchKey{}).(Stopwatch); ok {
		return time(name, call)
	}
	return call()
}
