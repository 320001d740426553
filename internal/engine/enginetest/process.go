package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const sigkill = syscall.SIGKILL

// killed is the exit of a process by SIGKILL.
var killed = engine.Exit{Signal: sigkill}

func (s *suite) testInfo(t *testing.T) {
	info := s.engine.Info()
	if info.Target.String() == "" {
		t.Error("Info has no target")
	}
	if strings.TrimSpace(info.Version) == "" || strings.Contains(info.Version, "\n") {
		t.Errorf("Info has the version %q, want one line", info.Version)
	}
	if info.Isolation == "" {
		t.Error("Info has no isolation")
	}
	if info.Cgroup == "" {
		t.Error("Info has no cgroup mode")
	}
	if guest := info.Isolation == engine.VM; guest != (info.SmallGuest != "") {
		t.Errorf("Info with the isolation %q has the remedy %q for a small guest", info.Isolation, info.SmallGuest)
	}
	if recheck := s.engine.Info(); recheck.Target.String() != info.Target.String() || recheck.Version != info.Version {
		t.Errorf("Info changed from %+v to %+v", info, recheck)
	}
}

func (s *suite) testLifecycle(t *testing.T) {
	b := s.create(t, s.spec(probe.Ready()))
	s.wantState(t, b, engine.Created)
	if got := b.stdout.String(); got != "" {
		t.Errorf("the process wrote %q before it was started", got)
	}
	s.wantReady(t, s.started(t, b))
	s.wantState(t, b, engine.Running)
	s.kill(t, b, killed)
	s.wantGone(t, b)
	s.delete(t, b)
	s.wantGone(t, b)
	s.delete(t, b) // idempotent
}

func (s *suite) testExitCode(t *testing.T) {
	b := s.start(t, s.spec(probe.Exit(7)))
	s.wantExit(t, b, engine.Exit{Code: 7})
	s.wantGone(t, b)
}

func (s *suite) testOutputIsWhole(t *testing.T) {
	b := s.complete(t, s.spec(probe.Latency(50*time.Millisecond).Args))
	wantReport(t, b.stdout)
	if !b.stdout.isClosed() || !b.stderr.isClosed() {
		t.Error("the writers are not closed when Delete has returned")
	}
	if got := b.stderr.String(); strings.Contains(got, "metric") {
		t.Errorf("Stderr has the standard output: %s", got)
	}
}

func (s *suite) testOutputsAreSeparate(t *testing.T) {
	const name = "no-such-command"
	complaint := s.start(t, s.spec([]string{probe.Path, name}))
	exit, err := complaint.Wait(s.context(t))
	if err != nil || exit.Code == 0 {
		t.Errorf("Wait = %v, %v; want a code other than 0", exit, err)
	}
	s.delete(t, complaint)
	if got := complaint.stdout.String(); got != "" {
		t.Errorf("Stdout = %q, want nothing: the process wrote to standard error only", got)
	}
	if got := complaint.stderr.String(); !strings.Contains(got, name) {
		t.Errorf("Stderr = %q, want a complaint about %s", got, name)
	}
}

// testNoWriters checks that a process runs without writers for its output.
func (s *suite) testNoWriters(t *testing.T) {
	spec := s.spec(probe.Syscall(1, 10*time.Millisecond).Args)
	spec.Process.Stdout, spec.Process.Stderr = nil, nil
	s.complete(t, spec)
}

func (s *suite) testWaitIsShared(t *testing.T) {
	b := s.startReady(t)
	const waiters = 4
	exits := make([]engine.Exit, waiters)
	errs := make([]error, waiters)
	ctx := s.context(t)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() { exits[i], errs[i] = b.Wait(ctx) })
	}
	s.kill(t, b, killed)
	wg.Wait()
	for i := range waiters {
		if errs[i] != nil || !s.isExit(exits[i], killed) {
			t.Errorf("Wait in a goroutine = %v, %v; want %v", exits[i], errs[i], killed)
		}
	}
	s.wantExit(t, b, killed)
}

func (s *suite) testKillAfterExit(t *testing.T) {
	b := s.start(t, s.spec(probe.Exit(3)))
	s.wantExit(t, b, engine.Exit{Code: 3})
	s.kill(t, b, engine.Exit{Code: 3})
	s.delete(t, b)
	s.kill(t, b, engine.Exit{Code: 3})
}

// testSIGTERM checks that the signal reaches the probe, which then exits by itself.
func (s *suite) testSIGTERM(t *testing.T) {
	b := s.startReady(t)
	if err := b.Kill(s.context(t), syscall.SIGTERM); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	s.wantExit(t, b, engine.Exit{})
}

func (s *suite) testMissingProgram(t *testing.T) {
	const program = "/no-such-program"
	spec := s.spec([]string{program})
	c, err := s.engine.Create(s.context(t), spec)
	if err == nil {
		s.deleteAfter(t, c)
		err = c.Start(s.context(t))
	}
	if err == nil {
		t.Fatal("neither Create nor Start refuses a missing program")
	}
	if says := err.Error(); !strings.Contains(says, program) && !strings.Contains(strings.ToLower(says), "no such file") {
		t.Errorf("the error does not name the missing %s: %v", program, err)
	}
	if c != nil {
		s.delete(t, c)
	}
	// The ID is free, because nothing is left.
	retry := s.spec(probe.Exit(0))
	retry.ID = spec.ID
	s.complete(t, retry)
}

func (s *suite) testTwoContainers(t *testing.T) {
	a, b := s.startReady(t), s.startReady(t)
	s.kill(t, a, killed)
	s.wantState(t, b, engine.Running)
	s.delete(t, a)
	s.wantState(t, b, engine.Running)
	if err := b.Kill(s.context(t), syscall.SIGTERM); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	s.wantExit(t, b, engine.Exit{})
	s.wantExit(t, a, killed)
}

func (s *suite) testDuplicateID(t *testing.T) {
	spec := s.spec(probe.Ready())
	b := s.create(t, spec)
	retry := s.spec(probe.Exit(0))
	retry.ID = spec.ID
	if c, err := s.engine.Create(s.context(t), retry); err == nil {
		s.deleteAfter(t, c)
		t.Fatalf("Create accepts the ID %q of a container that exists", spec.ID)
	}
	// The first container is unchanged.
	s.wantState(t, b, engine.Created)
	s.wantReady(t, s.started(t, b))
}

func (s *suite) testDeleteRunning(t *testing.T) {
	b := s.startReady(t)
	s.delete(t, b)
	s.wantGone(t, b)
	s.wantExit(t, b, killed)
	if !b.stdout.isClosed() {
		t.Error("Stdout is not closed when Delete has returned")
	}
}

func (s *suite) testDeleteCreated(t *testing.T) {
	b := s.create(t, s.spec(probe.Ready()))
	s.delete(t, b)
	s.wantGone(t, b)
	s.delete(t, b)
	if err := b.Start(s.context(t)); err == nil {
		t.Error("Start works after Delete")
	}
	if got := b.stdout.String(); got != "" {
		t.Errorf("the process of a container that was never started wrote %q", got)
	}
}

func (s *suite) testClose(t *testing.T) {
	for range 2 {
		if err := s.engine.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for _, left := range s.beyond(s.before) {
		t.Errorf("%s is left on the host although the engine is closed", left)
	}
}

// The tests in this file cancel a context before a call and during it. The moment during a call is random, because no event
// shows the progress of a call. The call may then have worked or have been cancelled, and must leave nothing in
// either case.

// eachCancelled calls test with a context that has ended, and with a context that is being cancelled.
func (s *suite) eachCancelled(t *testing.T, test func(ctx context.Context, hasEnded bool)) {
	t.Helper()
	for _, hasEnded := range []bool{true, false} {
		ctx, cancel := context.WithCancel(s.context(t))
		if hasEnded {
			cancel()
		} else {
			go cancel()
		}
		test(ctx, hasEnded)
	}
}

// cancelled returns the error of a call whose context ctx is being cancelled. must means that the call must not work.
func (s *suite) cancelled(ctx context.Context, t *testing.T, method string, must bool, call func() error) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- call() }()
	select {
	case err := <-result:
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
	s.eachCancelled(t, func(ctx context.Context, hasEnded bool) {
		spec := s.spec(probe.Ready())
		var c engine.Container
		err := s.cancelled(ctx, t, "Create", hasEnded, func() (err error) {
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
	s.eachCancelled(t, func(ctx context.Context, hasEnded bool) {
		b := s.create(t, s.spec(probe.Ready()))
		_ = s.cancelled(ctx, t, "Start", hasEnded, func() error { return b.Start(ctx) })
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
