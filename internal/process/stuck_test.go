package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// A program is on a file system whose server does not answer any more, so its execve blocks and cannot be killed. The call ends with its
// context. Meanwhile other calls, exits, garbage collections and Close work.
//
// Invariant call-limit.
func TestBlockedExecveBlocksNothingElse(t *testing.T) {
	files := enginetest.Serve(t, "#!/bin/sh\nexit 3\n")
	l, err := process.New(process.Options{})
	must.Do(t, err)
	process.SetGrace(l, time.Millisecond)
	program := process.Program{Args: []string{files.Path}, Stdout: os.Stderr, Stderr: os.Stderr}
	if exit, err := l.Call(t.Context(), program); err != nil || exit.Status.ExitStatus() != 3 {
		t.Fatalf("Call() = %+v, %v while the server answers; want exit code 3", exit, err)
	}
	files.Stall()
	cause := errors.New("enough")
	calls := map[string]func(context.Context) error{
		"Call": func(ctx context.Context) error { _, err := l.Call(ctx, program); return err },
		"Run":  func(ctx context.Context) error { return l.Run(ctx, exec.CommandContext(ctx, files.Path)) },
	}
	var stuckErrs []*process.StuckError
	for name, call := range calls {
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		<-files.Stalled
		runtime.GC()
		if exit, err := l.Call(t.Context(), shell("exit 4", os.Stderr)); err != nil || exit.Status.ExitStatus() != 4 {
			t.Errorf("another Call() = %+v, %v; want exit code 4", exit, err)
		}
		cancel(cause)
		err := <-result
		var s *process.StuckError
		if !errors.As(err, &s) || !errors.Is(err, cause) || s.Command != files.Path || s.Ended() {
			t.Fatalf("%s: %v; want a StuckError of %s with the cause", name, err, files.Path)
		}
		stuckErrs = append(stuckErrs, s)
	}
	files.Release()
	for _, s := range stuckErrs {
		for !s.Ended() { // the launcher reaps it
			runtime.Gosched()
		}
	}
	must.Do(t, l.Close())
}

// Close returns although a process is stuck.
func TestCloseWithStuckProcess(t *testing.T) {
	files := enginetest.Serve(t, "#!/bin/sh\n")
	l, err := process.New(process.Options{})
	must.Do(t, err)
	process.SetGrace(l, time.Millisecond)
	files.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-files.Stalled
		cancel()
	}()
	var s *process.StuckError
	if _, err := l.Call(ctx, process.Program{Args: []string{files.Path}, Stdout: os.Stderr, Stderr: os.Stderr}); !errors.As(err, &s) {
		t.Errorf("Call() = %v, want a StuckError", err)
	}
	must.Do(t, l.Close())
}
