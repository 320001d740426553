package oci_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// A runtime on a file system whose server does not answer any more cannot be killed. The call ends with its context, later calls fail at once
// with the reason, and Delete removes the container's own process.
//
// Invariant call-limit.
func TestStuckRuntimeBreaksItsEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("makes containers on this host; -short skips that")
	}
	crun := program(t, "crun")
	files := enginetest.Serve(t, "#!/bin/sh\nexec "+crun+" \"$@\"\n")
	s := enginetest.Session(t, oci.LauncherOptions)
	t.Cleanup(files.Release) // before the session's cgroup is removed
	s.Runtimes = map[string]target.Runtime{"remote": {Path: files.Path}}
	e, err := oci.Driver{}.Open(t.Context(), target.Target{Engine: "oci", Runtime: "remote"}, s)
	enginetest.Require(t, "oci/crun", err)
	placer := e.(engine.CgroupPlacer)
	group := s.Cgroup() + "/stuck"
	must.Do(t, placer.SetCgroupParent(group))
	c, err := e.Create(t.Context(), enginetest.Spec(s, "stuck"))
	must.Do(t, err)
	must.Do(t, c.Start(t.Context()))
	files.Stall()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-files.Stalled
		cancel(errors.New("enough"))
	}()
	_, err = c.State(ctx)
	if stuckErr, ok := errors.AsType[*process.StuckError](err); !ok || stuckErr.Ended() {
		t.Fatalf("State() = %v, want a StuckError", err)
	}
	// None of these needs a deadline.
	for _, attempt := range []struct {
		name string
		call func() error
	}{
		{"Create", func() error { _, err := e.Create(t.Context(), enginetest.Spec(s, "other")); return err }},
		{"State", func() error { _, err := c.State(t.Context()); return err }},
		{"Pause", func() error { return c.(engine.Pauser).Pause(t.Context()) }},
		{"Delete", func() error { return c.Delete(t.Context()) }},
	} {
		err := attempt.call()
		if _, ok := errors.AsType[*engine.UnusableError](err); !ok {
			t.Errorf("%s of a broken target: %v, want an UnusableError", attempt.name, err)
		}
	}
	if _, err := c.Wait(t.Context()); err != nil { // hangs if the container's process lives
		t.Error(err)
	}
	files.Release()
	enginetest.Check(t, errors.Join(placer.SetCgroupParent(""), e.Close()))
}

// program is the path of a runtime in PATH. A test whose runtime is absent is skipped or fails, as enginetest.Require says.
func program(t *testing.T, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil {
		err = &engine.UnsupportedError{What: "oci/" + name, Reason: err.Error()}
	}
	enginetest.Require(t, "oci/"+name, err)
	return file
}
