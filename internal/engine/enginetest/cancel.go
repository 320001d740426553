package enginetest

import (
	"context"
	"errors"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The tests in this file cancel a context before a call and during it. The moment during a call is random, because no event
// shows the progress of a call. The call may then have worked or have been cancelled, and must leave nothing in
// either case.

// eachCancelled calls test with a context that has ended, and with a context that is being cancelled.
func (s *suite) eachCancelled(t *testing.T, test func(ctx context.Context, ended bool)) {
	t.Helper()
	for _, ended := range []bool{true, false} {
		ctx, cancel := context.WithCancel(s.context(t))
		if ended {
			cancel()
		} else {
			go cancel()
		}
		test(ctx, ended)
	}
}

// cancelled returns the error of a call whose context ctx is being cancelled. must means that the call must not work.
func (s *suite) cancelled(ctx context.Context, t *testing.T, method string, must bool, call func() error) error {
	t.Helper()
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	select {
	case err := <-returned:
		if (err != nil || must) && !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("%s with a cancelled context: %v, want %v", method, err, ctx.Err())
		}
		return err
	case <-s.context(t).Done():
		t.Fatalf("%s continues although its context was cancelled", method)
		panic("not reached")
	}
}

func (s *suite) testCancelledCreate(t *testing.T) {
	s.eachCancelled(t, func(ctx context.Context, ended bool) {
		spec := s.spec(workload.Ready())
		var c engine.Container
		err := s.cancelled(ctx, t, "Create", ended, func() (err error) {
			c, err = s.engine.Create(ctx, spec)
			return err
		})
		if err == nil {
			s.deleteAfter(t, c)
		} else {
			s.delete(t, s.create(t, spec)) // nothing is left: the ID is free
		}
	})
}

func (s *suite) testCancelledStart(t *testing.T) {
	s.eachCancelled(t, func(ctx context.Context, ended bool) {
		b := s.create(t, s.spec(workload.Ready()))
		_ = s.cancelled(ctx, t, "Start", ended, func() error { return b.Start(ctx) })
		s.delete(t, b)
		s.wantGone(t, b)
	})
}

func (s *suite) testCancelledWait(t *testing.T) {
	b := s.startReady(t)
	s.eachCancelled(t, func(ctx context.Context, _ bool) {
		_ = s.cancelled(ctx, t, "Wait", true, func() error {
			_, err := b.Wait(ctx)
			return err
		})
	})
	s.wantState(t, b, engine.Running)
	s.delete(t, b)
	s.wantExit(t, b, killed)
}
