package podman_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/podman"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// limits reads the limits of the only container below a cgroup.
func limits(t *testing.T, s engine.Session, group string) string {
	t.Helper()
	return enginetest.Limits(t, s, group+"/libpod-"+strings.Repeat("[0-9a-f]", 64))
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
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

// Containers have the requested limits and the requested cgroup.
func TestLimitsAndCgroup(t *testing.T) {
	for _, name := range []string{"podman/runc", "podman/crun", "podman/youki", "podman/runsc@platform=systrap"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			e := enginetest.Open(t, podman.Driver{}, name, s)
			group := "/" + engine.Prefix + s.RunID + "/trial"
			if err := e.(engine.CgroupPlacer).SetCgroupParent(group); err != nil {
				t.Fatal(err)
			}
			sp := enginetest.Spec(s, "limits")
			sp.Resources = engine.Resources{CPU: 0.5, Memory: 64 << 20}
			c := enginetest.Running(t, e, sp)
			if got, want := limits(t, s, group), fmt.Sprint("50000 100000 ", 64<<20); got != want {
				t.Errorf("limits at creation are %q, want %q", got, want)
			}
			for _, tt := range []struct {
				limits engine.Resources
				want   string
			}{
				{engine.Resources{CPU: 0.1}, fmt.Sprint("10000 100000 ", 64<<20)},
				{engine.Resources{CPU: 1.5, Memory: 96 << 20}, fmt.Sprint("150000 100000 ", 96<<20)},
				{engine.Resources{Memory: 48 << 20}, fmt.Sprint("150000 100000 ", 48<<20)},
			} {
				if err := c.(engine.Updater).Update(t.Context(), tt.limits); err != nil {
					t.Fatalf("Update(%+v): %v", tt.limits, err)
				}
				if got := limits(t, s, group); got != tt.want {
					t.Errorf("limits after Update(%+v) are %q, want %q", tt.limits, got, tt.want)
				}
			}
			if err := c.Delete(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.(engine.CgroupPlacer).SetCgroupParent(""); err != nil {
				t.Error(err)
			}
		})
	}
}

// Many lives leave no descriptors, no goroutines, no processes and no files.
func TestNothingIsLeftOfManyLives(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	before := remains(s)
	enginetest.ManyLives(t, 12, s, e)
	enginetest.GivenUp(t, 8, 10*time.Millisecond, s, e)
	for _, left := range enginetest.Surplus(before, remains(s)) {
		t.Errorf("%s is left behind", left)
	}
}

// userState is the state of the user's own Podman on the host, which a run must not change.
func userState(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	state["mounts"] = string(mounts)
	_, err = os.Lstat("/oom") // conmon's mark of a container that exceeded its memory limit
	state["/oom"] = fmt.Sprint(err)
	for _, dir := range []string{
		"/dev/shm", "/var/lib/containers", "/var/lib/containers/storage", "/var/lib/containers/cache", "/run/libpod", "/run/containers",
		"/etc/containers", "/etc/cni/net.d", "/var/lib/cni", "/run/runc", "/run/crun", "/run/runsc",
	} {
		entries, err := os.ReadDir(dir)
		state[dir] = fmt.Sprint(err)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // another program has removed it
			}
			state[dir] += fmt.Sprintln(e.Name(), info.ModTime())
		}
	}
	return state
}

// Nothing is left in the host's mount namespace, even if the launcher has no namespace of its own.
func TestHostStaysAsItIs(t *testing.T) {
	lock, err := os.ReadFile("/dev/shm/libpod_lock")
	if err != nil {
		lock = nil
	}
	before := userState(t)
	s := enginetest.Session(t, func(*cgroup.Hierarchy) process.Options { return process.Options{} })
	e := enginetest.Open(t, podman.Driver{}, "podman/runc", s)
	spec := enginetest.Spec(s, "private")
	spec.Process.Args, spec.Resources.Memory = workload.Grow(64), 32<<20
	c := enginetest.Running(t, e, spec)
	if exit, err := c.Wait(t.Context()); err != nil || exit.Signal != unix.SIGKILL && exit.Code != 128+int(unix.SIGKILL) {
		t.Errorf("a container beyond its memory limit ended with %+v, %v", exit, err)
	}
	if err := c.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for what, now := range userState(t) {
		if was, ok := before[what]; ok && now != was {
			t.Errorf("%s is\n%s\nafter the run, and was\n%s", what, now, was)
		}
	}
	if now, err := os.ReadFile("/dev/shm/libpod_lock"); err == nil && !bytes.Equal(now, lock) {
		t.Error("the locks of the user's Podman have changed")
	}
}

// Two runs can have containers of the same name.
func TestContainerOfAnotherRunIsLeftAlone(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	mine, theirs := enginetest.Open(t, podman.Driver{}, "podman/crun", s), enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	sp := enginetest.Spec(s, "same")
	a, b := enginetest.Running(t, mine, sp), enginetest.Running(t, theirs, sp)
	if err := a.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	if state, err := b.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the other container is %s, %v; want it unchanged and running", state, err)
	}
}

// A refusal contains the reason and the remedy.
func TestRefuses(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Runtimes = map[string]target.Runtime{"broken": {Path: "/bin/false"}, "shim": {Type: "io.containerd.kata.v2"}}
	old := filepath.Join(s.State, "old")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho 'Error: no luck today' >&2\nexit 125\n"), 0o700); err != nil {
		t.Fatal(err)
	}
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
		e, err := podman.Driver{}.Open(t.Context(), parse(t, tt.name), s)
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

// Missing images, images without space on the disk, and names in use are errors.
func TestCreateFails(t *testing.T) {
	small := t.TempDir()
	// This precedes the session, whose launcher may not see later mounts.
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("needs the right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Data = small
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	missing := s.Registry.Addr() + "/touchstone/no-such-image:latest"
	if err := e.(engine.Puller).Pull(t.Context(), missing); err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("pull a missing image: %v", err)
	}
	sp := enginetest.Spec(s, "missing")
	sp.Image = missing
	if _, err := e.Create(t.Context(), sp); err == nil || !strings.Contains(err.Error(), "image not known") {
		t.Errorf("create from a missing image: %v", err)
	}
	large, err := s.Registry.Fresh(t.Context(), 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.(engine.Puller).Pull(t.Context(), large); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("pull an image without space for it: %v", err)
	}
	sp = enginetest.Spec(s, "taken")
	enginetest.Running(t, e, sp)
	if _, err := e.Create(t.Context(), sp); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("create with a name in use: %v", err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
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
	if err := errors.Join(os.Rename(dirs[0], dirs[0]+".old"), os.Mkdir(dirs[0], 0o700)); err != nil {
		t.Fatal(err)
	}
	sp := enginetest.Spec(s, "unseen")
	sp.Process.Args = workload.Exit(7)
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
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
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
