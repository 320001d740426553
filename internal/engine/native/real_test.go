package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func open(t *testing.T) (engine.Session, engine.Engine) {
	t.Helper()
	s := enginetest.Session(t, oci.LauncherOptions)
	e, err := native.Driver{}.Open(t.Context(), target.Target{Engine: target.Native}, s)
	enginetest.Require(t, target.Native, err)
	return s, e
}

func spec(s engine.Session, n int, args ...string) engine.Spec {
	return engine.Spec{
		ID: fmt.Sprintf("%s%s-real-%03d", engine.Prefix, s.RunID, n), Rootfs: s.Rootfs, Process: engine.Process{Args: args},
	}
}

func processes(t *testing.T, s engine.Session, c engine.Container) []int {
	t.Helper()
	g, err := s.Cgroups.Open("/" + engine.Prefix + s.RunID + "/" + c.ID())
	must.Do(t, err)
	pids, err := g.Procs()
	must.Do(t, err)
	return pids
}

func TestCreateFails(t *testing.T) {
	s, e := open(t)
	mount := spec(s, 1, probe.Ready()...)
	mount.Mounts = []engine.Mount{{Source: filepath.Join(s.State, "no-such-source"), Target: "/data"}}
	target := spec(s, 2, probe.Ready()...)
	target.Mounts = []engine.Mount{{Source: t.TempDir(), Target: "/no-such-target"}}
	rootfs := spec(s, 3, probe.Ready()...)
	rootfs.Rootfs = filepath.Join(s.State, "no-such-rootfs")
	for _, tt := range []struct {
		spec engine.Spec
		want string
	}{
		{mount, "no-such-source"},
		{target, "no-such-target"},
		{rootfs, "no-such-rootfs"},
	} {
		c, err := e.Create(t.Context(), tt.spec)
		if err == nil {
			t.Errorf("Create with %s worked: %v", tt.want, c.Delete(t.Context()))
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.spec.ID) {
			t.Errorf("Create: %v; want an error with %s and %s", err, tt.spec.ID, tt.want)
		}
	}
}

func TestProgramThatCannotRun(t *testing.T) {
	s, e := open(t)
	must.Do(t, os.WriteFile(filepath.Join(s.Rootfs, "text"), []byte("no program"), 0o755))
	for i, program := range []string{"/no-such-program", "/text", "/tmp"} {
		c, err := e.Create(t.Context(), spec(s, i, program))
		if err == nil {
			err = c.Start(t.Context())
			enginetest.Check(t, c.Delete(t.Context()))
		}
		if err == nil || !strings.Contains(err.Error(), program) {
			t.Errorf("start of %s: %v", program, err)
		}
	}
	c := enginetest.Running(t, e, spec(s, 10, probe.Ready()...))
	if _, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/no-such-program"}}); err == nil || !strings.Contains(err.Error(), "/no-such-program") {
		t.Errorf("Exec of a missing program: %v", err)
	}
	// The output and exit code of a program are no errors of Exec.
	exit, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{probe.Path, "dance"}})
	if err != nil || exit.Code != 2 {
		t.Errorf("Exec of a program that fails = %v, %v", exit, err)
	}
}

func TestOptions(t *testing.T) {
	s, _ := open(t)
	for name, want := range map[string]string{
		"native@network=bridge": "veth or loopback", "native@cpu=1": "network", "native@network=veth,other=1": "network",
	} {
		if _, err := (native.Driver{}).Open(t.Context(), enginetest.Parse(t, name), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open of %s: %v; want a refusal with %s", name, err, want)
		}
	}
}

// An Exec that is given up returns the cause, and leaves the container as it is.
func TestExecObeysItsContext(t *testing.T) {
	s, e := open(t)
	cause := errors.New("enough")
	c := enginetest.Running(t, e, spec(s, 1, probe.Ready()...))
	for range 10 { // the process and the context end in any order
		ctx, cancel := context.WithCancelCause(t.Context())
		out := &line{got: make(chan struct{})}
		go func() {
			<-out.got // it runs
			cancel(cause)
		}()
		if _, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: probe.Ready(), Stdout: out}); !errors.Is(err, cause) {
			t.Errorf("Exec with a context that ends: %v, want the cause", err)
		}
	}
	if state, err := c.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the container is %s, %v after the other process was given up", state, err)
	}
}

// line reports the first byte.
type line struct {
	got chan struct{}
	n   int
}

func (l *line) Write(p []byte) (int, error) {
	if l.n == 0 {
		close(l.got)
	}
	l.n += len(p)
	return len(p), nil
}

// A process that was killed before its start cannot be started.
func TestStartAfterTheEnd(t *testing.T) {
	s, e := open(t)
	c, err := e.Create(t.Context(), spec(s, 1, probe.Ready()...))
	must.Do(t, err)
	enginetest.Check(t, c.Kill(t.Context(), syscall.SIGKILL))
	if exit, err := c.Wait(t.Context()); err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("Wait() = %v, %v", exit, err)
	}
	if err := c.Start(t.Context()); err == nil {
		t.Error("Start works after Kill")
	}
	enginetest.Check(t, errors.Join(c.Kill(t.Context(), syscall.SIGTERM), c.Delete(t.Context())))
}

// A native process has no filter, and the condition says so.
func TestSeccomp(t *testing.T) {
	enginetest.Seccomp(t, native.Driver{}, target.Native, enginetest.Session(t, oci.LauncherOptions), false)
}
