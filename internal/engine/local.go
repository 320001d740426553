package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// Local is the base of an engine that starts all its processes by the session's launcher, without a daemon.
type Local struct {
	Session Session

	mu     sync.Mutex
	parent string
	stuck  *process.StuckError // the last one
}

// SetCgroupParent implements CgroupPlacer.
func (l *Local) SetCgroupParent(group string) error {
	if err := l.Session.SetCgroupParent(group); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parent = group
	return nil
}

// CgroupParent returns the group of the last SetCgroupParent, or the run's own cgroup if that was empty.
func (l *Local) CgroupParent() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parent == "" {
		return l.Session.Cgroup()
	}
	return l.parent
}

// Broken returns an error while a process of an earlier call is stuck in the kernel: another call would wait for the same file system or
// lock. It is an *UnusableError.
func (l *Local) Broken() error {
	l.mu.Lock()
	stuckErr := l.stuck
	l.mu.Unlock()
	if stuckErr == nil || stuckErr.Ended() {
		return nil
	}
	return &UnusableError{stuckErr}
}

// Outcome passes on the error of a call. After a *process.StuckError the engine is broken while the process exists.
func (l *Local) Outcome(err error) error {
	if stuckErr, ok := errors.AsType[*process.StuckError](err); ok {
		l.mu.Lock()
		l.stuck = stuckErr
		l.mu.Unlock()
	}
	return err
}

// Stuck reports whether an error is a *process.StuckError or an *UnusableError.
func Stuck(err error) bool {
	_, isStuck := errors.AsType[*process.StuckError](err)
	_, unusable := errors.AsType[*UnusableError](err)
	return isStuck || unusable
}

// UnusableError reports a call that was not made, because a process of an earlier call is stuck.
type UnusableError struct{ Stuck *process.StuckError }

func (e *UnusableError) Error() string {
	return fmt.Sprintf("the target is broken: an earlier call was given up: %v", e.Stuck)
}

// Usage implements Accountant.
func (l *Local) Usage() Usage { return Usage{CPU: l.Session.Launcher.CPU()} }

// ReadPID reads the pid file of a runtime or a monitor.
func ReadPID(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read a pid file: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read from
	const limit = 100                // a runtime may write anything
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return 0, fmt.Errorf("read a pid file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("read a pid file: %.20q is not a process ID", text)
	}
	return pid, nil
}

// lastSignal is the highest number of a signal.
const lastSignal = 64

// ExitOfCode translates the exit code of a container. Runtimes and shells report signal n as 128+n. A program that exits with
// such a code by itself is indistinguishable from a killed one.
func ExitOfCode(code int) Exit {
	if n := code - 128; n > 0 && n <= lastSignal {
		return Exit{Signal: syscall.Signal(n)}
	}
	return Exit{Code: code}
}

// RunToExit starts a created container and checks its exit code. Drivers use it for their test containers.
func RunToExit(ctx context.Context, c Container, code int) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	exit, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	if exit != (Exit{Code: code}) {
		return fmt.Errorf("the probe exited with %v instead of exit code %d", exit, code)
	}
	return nil
}

// TestSpec describes a test container. The suffix makes its ID unique in the run.
func (s Session) TestSpec(suffix string, n Network, program ...string) Spec {
	spec := Spec{ID: Prefix + s.RunID + "-try" + suffix, Rootfs: s.Rootfs, Process: Process{Args: program}, Network: n}
	if s.Registry != nil {
		spec.Image = s.Registry.Probe()
	}
	return spec
}

// Try runs a test container on e, and removes it.
func (s Session) Try(ctx context.Context, e Engine, suffix string, n Network) (Container, error) {
	c, err := e.Create(ctx, s.TestSpec(suffix, n, "/probe", "exit", "42"))
	if err != nil {
		return nil, err
	}
	return c, errors.Join(RunToExit(ctx, c, 42), Undo(ctx, c))
}

// TryRunning starts a test container that does not end by itself, and removes it. Start can check such a container while it runs.
func (s Session) TryRunning(ctx context.Context, e Engine, suffix string) error {
	c, err := e.Create(ctx, s.TestSpec(suffix, NoNetwork, "/probe", "pause"))
	if err != nil {
		return err
	}
	return errors.Join(c.Start(ctx), Undo(ctx, c))
}

// UndoLimit is the deadline for clean-up after the caller's context has ended.
const UndoLimit = 20 * time.Second

// WithUndoLimit returns a context for clean-up, which may go on after the end of ctx.
func WithUndoLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), UndoLimit)
}

// Undo removes a container whose creation failed or was cancelled, or a test container.
func Undo(ctx context.Context, c Container) error {
	ctx, cancel := WithUndoLimit(ctx)
	defer cancel()
	return c.Delete(ctx)
}

// WithGracePeriod returns a context that outlives ctx by the limit. It is for calls that change something: the engine
// carries on with a request after its caller has given up, and only the response names the objects to remove. A
// command that is killed halfway may leave objects that no other command can find.
func WithGracePeriod(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		graceCtx, end := context.WithTimeout(inner, limit)
		defer end()
		<-graceCtx.Done()
		cancel(context.Cause(ctx))
	})
	return inner, func() {
		stop()
		cancel(nil)
	}
}

// Ended reports whether a channel is closed.
func Ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Await returns when a channel is closed. If ctx ends before, the error is its cause. A channel that is already closed counts
// even if ctx has ended.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if Ended(done) {
			return nil
		}
		return context.Cause(ctx)
	}
}
