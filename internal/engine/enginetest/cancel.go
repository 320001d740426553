package enginetest

import (
	"context"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The tests in this file cancel a context before a call and during it. The moment during a call is random, because no event
// shows the progress of a call. The call may then have worked or have been cancelled, and must leave nothing in
// either case.

func (s *suite) testCancelledCreate(t *testing.T) {
	ctx, cancel := context.WithCancel(s.context(t))
	cancel()
	s.createCancelled(ctx, t, true)

	ctx, cancel = context.WithCancel(s.context(t))
	go cancel()
	s.createCancelled(ctx, t, false)
}

// createCancelled makes a container in a context that is being cancelled. must means that the context has ended before.
func (s *suite) createCancelled(ctx context.Context, t *testing.T, must bool) {
	t.Helper()
	spec := s.spec(workload.Ready())
	c, err := within(t, s, "Create", func() (engine.Container, error) { return s.engine.Create(ctx, spec) })
	if err == nil {
		s.deleteAfter(t, c)
	}
	if err != nil || must {
		wantCancelled(ctx, t, "Create", err)
	}
	if err != nil {
		s.delete(t, s.create(t, spec)) // nothing is left: the ID is free
	}
}

func (s *suite) testCancelledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(s.context(t))
	cancel()
	s.startCancelled(ctx, t, true)

	ctx, cancel = context.WithCancel(s.context(t))
	go cancel()
	s.startCancelled(ctx, t, false)
}

func (s *suite) startCancelled(ctx context.Context, t *testing.T, must bool) {
	t.Helper()
	b := s.create(t, s.spec(workload.Ready()))
	_, err := within(t, s, "Start", func() (struct{}, error) { return struct{}{}, b.Start(ctx) })
	if err != nil || must {
		wantCancelled(ctx, t, "Start", err)
	}
	s.delete(t, b)
	s.wantGone(t, b)
}

func (s *suite) testCancelledWait(t *testing.T) {
	b := s.startReady(t)
	ctx, cancel := context.WithCancel(s.context(t))
	cancel()
	_, err := within(t, s, "Wait", func() (engine.Exit, error) { return b.Wait(ctx) })
	wantCancelled(ctx, t, "Wait", err)

	ctx, cancel = context.WithCancel(s.context(t))
	go cancel()
	_, err = within(t, s, "Wait", func() (engine.Exit, error) { return b.Wait(ctx) })
	wantCancelled(ctx, t, "Wait", err)

	s.wantState(t, b, engine.Running)
	s.delete(t, b)
	s.wantExit(t, b, killed)
}
