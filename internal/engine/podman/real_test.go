package podman_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/podman"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
//
// Invariant kvm-platform.
func TestOtherPlatformIsAFailure(t *testing.T) {
	enginetest.OtherPlatform(t, podman.Driver{}, "podman/runsc@platform=kvm", enginetest.Session(t, oci.LauncherOptions))
}

// An exec for which gVisor gives no reason has the known cause.
func TestSilentExec(t *testing.T) {
	cells.Need(t, "podman/silent-exec")
	enginetest.SilentExec(t, podman.Driver{}, "podman/runsc", enginetest.Session(t, oci.LauncherOptions))
}

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m))
}

// Nothing is left in the host's mount namespace and of the user's own Podman, even if the launcher has no namespace of its own.
//
// Invariant daemon-namespaces.
func TestHostStaysAsItIs(t *testing.T) {
	state := func() map[string]string {
		return enginetest.HostState(t, []string{
			"/oom", // conmon's mark of a container that exceeded its memory limit
			"/dev/shm/libpod_lock",
		}, []string{
			"/dev/shm", "/var/lib/containers", "/var/lib/containers/storage", "/var/lib/containers/cache", "/run/libpod", "/run/containers",
			"/etc/containers", "/etc/cni/net.d", "/var/lib/cni", "/run/runc", "/run/crun", "/run/runsc",
		})
	}
	baseline := state()
	s := enginetest.Session(t, func(*cgroup.Hierarchy) process.Options { return process.Options{} })
	e := enginetest.Open(t, podman.Driver{}, "podman/runc", s)
	spec := enginetest.Spec(s, "private")
	spec.Process.Args, spec.Resources.Memory = probe.Grow(64), 32<<20
	c := enginetest.Running(t, e, spec)
	if exit, err := c.Wait(t.Context()); err != nil || exit.Signal != unix.SIGKILL && exit.Code != 128+int(unix.SIGKILL) {
		t.Errorf("a container beyond its memory limit ended with %+v, %v", exit, err)
	}
	enginetest.Check(t, errors.Join(c.Delete(t.Context()), e.Close()))
	enginetest.WantSameState(t, baseline, state())
}

// Two runs can have containers of the same name.
func TestContainerOfAnotherRunIsLeftAlone(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	open := func() engine.Engine { return enginetest.Open(t, podman.Driver{}, "podman/crun", s) }
	enginetest.Namesakes(t, open(), open(), enginetest.Spec(s, "same"))
}

// A refusal contains the reason and the remedy.
func TestRefuses(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Runtimes = map[string]target.Runtime{"broken": {Path: "/bin/false"}, "shim": {Type: "io.containerd.kata.v2"}}
	old := filepath.Join(s.State, "old")
	must.Do(t, os.WriteFile(old, []byte("#!/bin/sh\necho 'Error: no luck today' >&2\nexit 125\n"), 0o700))
	for _, tt := range []struct {
		name    string
		engines map[string]string
		want    string
	}{
		{"podman/no-such-runtime", nil, "no-such-runtime is not on PATH"},
		{"podman/broken", nil, "ended with exit code 1"},
		{"podman/shim", nil, "io.containerd.kata.v2 is a containerd shim"},
		{"podman/runc@root=/x", nil, "is set by Touchstone itself"},
		{"podman/runc@no-such-flag=x", nil, "no-such-flag"},
		{"podman/runc", map[string]string{"podman": "/no-such-file"}, "podman is missing"},
		{"podman/runc", map[string]string{"conmon": "/no-such-file"}, "conmon is missing"},
		{"podman/runc", map[string]string{"podman": old}, "no luck today"},
	} {
		s := s
		s.Engines = tt.engines
		e, err := podman.Driver{}.Open(t.Context(), enginetest.Parse(t, tt.name), s)
		if err == nil {
			t.Errorf("%s opens with %v", tt.name, tt.engines)
			_ = e.Close()
			continue
		}
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("open %s with %v: %v; want a refusal with %q", tt.name, tt.engines, err, tt.want)
		}
	}
	left, err := filepath.Glob(filepath.Join(s.State, "p", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left in the state directory: %q, %v", left, err)
	}
	candidates := podman.Driver{}.Candidates(t.Context(), s)
	found := false
	for _, c := range candidates {
		if c.Target.String() == "podman/shim" {
			found = engine.Unsupported(c.Err)
		}
	}
	if !found {
		t.Errorf("candidates %v, want the reason why a shim cannot be used", candidates)
	}
}

func TestDiskFullAtPull(t *testing.T) {
	disk := enginetest.SmallDisk(t)
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Data = disk
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	enginetest.DiskFull(t, s, e)
	enginetest.Check(t, enginetest.Running(t, e, enginetest.Spec(s, "after")).Delete(t.Context())) // the other image still works
}

// If conmon is killed, the exit of its container is not known.
func TestKilledConmon(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	c := enginetest.Running(t, e, enginetest.Spec(s, "orphan"))
	files, err := filepath.Glob(filepath.Join(s.Data, "podman", "*", "logs", c.ID()+".conmon"))
	if err != nil || len(files) != 1 {
		t.Fatalf("conmon's pid files: %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	must.Do(t, err)
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	if exit, err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "conmon") {
		t.Errorf("Wait = %v, %v although conmon was killed", exit, err)
	}
	if err := c.Delete(t.Context()); err != nil {
		t.Errorf("Delete: %v", err)
	}
}

// Podman's clean-up removes the exit file of a container. If that precedes the event of the file, Podman still knows the exit.
func TestExitWithoutEvent(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	dirs, err := filepath.Glob(filepath.Join(s.State, "p", "*", "t", "exits"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("directories of exit files: %q, %v", dirs, err)
	}
	// The engine watches the old directory, and conmon writes to the new one.
	must.Do(t, errors.Join(os.Rename(dirs[0], dirs[0]+".old"), os.Mkdir(dirs[0], 0o700)))
	sp := enginetest.Spec(s, "unseen")
	sp.Process.Args = probe.Exit(7)
	c := enginetest.Running(t, e, sp)
	for range 2 {
		if exit, err := c.Wait(t.Context()); err != nil || exit != (engine.Exit{Code: 7}) {
			t.Errorf("Wait = %v, %v; want code 7", exit, err)
		}
	}
}

// Close removes a container that was not deleted.
func TestCloseWithContainer(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	c, err := e.Create(t.Context(), enginetest.Spec(s, "kept"))
	must.Do(t, err)
	must.Do(t, c.Start(t.Context()))
	enginetest.Check(t, e.Close())
	for _, left := range remains(s) {
		t.Errorf("%s is left behind", left)
	}
}

// The seccomp filter follows the plan.
func TestSeccomp(t *testing.T) {
	enginetest.Seccomp(t, podman.Driver{}, "podman/crun", enginetest.Session(t, oci.LauncherOptions), true)
}

func TestRuntimeCommands(t *testing.T) {
	enginetest.Commands(t, podman.Driver{}, enginetest.Session(t, oci.LauncherOptions))
}
