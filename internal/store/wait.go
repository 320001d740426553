package store

import (
	"context"
	"time"
)

// waitKey is the key of a notice in a context.
type waitKey struct{}

// notice is called once for each wait for another process that takes longer than a delay.
type notice struct {
	delay time.Duration
	call  func(path string)
}

// WithNotice returns a context whose callers learn of waits: a write that waits longer than a delay for the write lock of another process calls notify with
// the path of the results file, in a goroutine of its own.
func WithNotice(ctx context.Context, delay time.Duration, notify func(path string)) context.Context {
	return context.WithValue(ctx, waitKey{}, notice{delay, notify})
}

// noticeWait begins a wait for a lock of a file. The returned function ends it.
func noticeWait(ctx context.Context, path string) (end func()) {
	n, ok := ctx.Value(waitKey{}).(notice)
	if !ok {
		return func() {}
	}
	patience, stop := context.WithTimeout(context.WithoutCancel(ctx), n.delay)
	forget := context.AfterFunc(patience, func() { n.call(path) })
	return func() {
		forget()
		stop()
	}
}
