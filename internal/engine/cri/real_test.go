package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// opened opens a target of a private containerd.
func opened(t *testing.T, s engine.Session) engine.Engine {
	t.Helper()
	return enginetest.Open(t, cri.NewContainerd(), "containerd/runc", s)
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
func TestOtherPlatformIsAFailure(t *testing.T) {
	for _, name := range []string{"containerd/runsc@platform=kvm", "containerd/runsc@platform=kvm,shim=runc"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			enginetest.OtherPlatform(t, cri.NewContainerd(), name, session(t, ""))
		})
	}
	t.Run("crio_runsc@platform=kvm", func(t *testing.T) {
		enginetest.OtherPlatform(t, cri.NewCRIO(), "crio/runsc@platform=kvm", session(t, ""))
	})
}

// An exec for which gVisor gives no reason has the known cause.
func TestSilentExec(t *testing.T) {
	cells.Need(t, "cri/silent-exec")
	for _, name := range []string{"containerd/runsc", "containerd/runsc@shim=runc"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			enginetest.SilentExec(t, cri.NewContainerd(), name, session(t, ""))
		})
	}
	t.Run("crio_runsc", func(t *testing.T) { enginetest.SilentExec(t, cri.NewCRIO(), "crio/runsc", session(t, "")) })
}

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m))
}

// The steps of a container's life are the calls of CRI.
func TestSteps(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	var steps []string
	ctx := engine.WithStopwatch(t.Context(), func(step string, call func() error) error {
		steps = append(steps, step)
		return call()
	})
	want := func(what string, names ...string) {
		t.Helper()
		if !slices.Equal(steps, names) {
			t.Errorf("%s has the steps %q, want %q", what, steps, names)
		}
		steps = nil
	}
	c, err := e.Create(ctx, enginetest.Spec(s, "steps"))
	if err != nil {
		t.Fatal(err)
	}
	want("Create", "RunPodSandbox", "CreateContainer")
	if err := c.Start(ctx); err != nil {
		t.Error(err)
	}
	want("Start", "StartContainer")
	if err := c.Kill(ctx, syscall.SIGUSR1); err == nil || !strings.Contains(err.Error(), "CRI has no call that sends signal") {
		t.Errorf("Kill with a signal that CRI does not have: %v", err)
	}
	want("Kill with such a signal")
	if err := c.Kill(ctx, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	want("Kill", "StopContainer")
	if _, err := c.Wait(ctx); err != nil {
		t.Error(err)
	}
	want("Wait", "") // the exit event
	if err := c.Delete(ctx); err != nil {
		t.Error(err)
	}
	want("Delete", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox")
}

// limits reads the limits of a container from its cgroup: CPU quota and memory.
func limits(t *testing.T, s engine.Session, parent, id string) string {
	t.Helper()
	read := func(controller, v1, v2 string) string {
		m, ok := s.Cgroups.Controller(controller)
		if !ok {
			t.Skipf("the host has no cgroup controller %s", controller)
		}
		file, none := v1, "-1 9223372036854771712"
		if m.V2 {
			file, none = v2, "max"
		}
		files, err := filepath.Glob(filepath.Join(m.Dir, s.Cgroups.Base(), parent, id, "*", file))
		if err != nil || len(files) == 0 {
			t.Fatalf("no cgroup of the container below %s/%s: %v", parent, id, err)
		}
		for _, file := range files { // one of the pause container, one of ours
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if value, _, _ := strings.Cut(strings.TrimSpace(string(text)), " "); !strings.Contains(none, value) {
				return value
			}
		}
		return "none"
	}
	return read("cpu", "cpu.cfs_quota_us", "cpu.max") + " " + read("memory", "memory.limit_in_bytes", "memory.max")
}

// Limits hold, and containers are below the group of SetCgroupParent.
func TestLimitsAndCgroup(t *testing.T) {
	s := session(t, "", "containerd/runc")
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups")
	}
	e := opened(t, s)
	place := "/" + engine.Prefix + s.RunID + "/t7"
	if err := e.(engine.CgroupPlacer).SetCgroupParent(place); err != nil {
		t.Fatal(err)
	}
	limited := enginetest.Spec(s, "limited")
	limited.Resources = engine.Resources{CPU: 0.5, Memory: 64 << 20}
	c := enginetest.Running(t, e, limited)
	if got, want := limits(t, s, place, c.ID()), fmt.Sprint("50000 ", 64<<20); got != want {
		t.Errorf("limits at creation are %q, want %q", got, want)
	}
	if err := c.(engine.Updater).Update(t.Context(), engine.Resources{CPU: 0.25, Memory: 128 << 20}); err != nil {
		t.Error(err)
	}
	if got, want := limits(t, s, place, c.ID()), fmt.Sprint("25000 ", 128<<20); got != want {
		t.Errorf("limits after Update are %q, want %q", got, want)
	}
	if service := e.(engine.DaemonBacked).Daemon(); len(service.PIDs) == 0 || service.Cgroup == nil {
		t.Errorf("the private engine's processes are %+v", service)
	}
}

// usersOwn returns the session of another run. The private engine of this session is the user's own there.
func usersOwn(t *testing.T, s engine.Session) engine.Session {
	t.Helper()
	user := s
	user.RunID += "x"
	user.Managed, user.Targets = false, nil
	user.Sockets = map[string]string{"containerd": "unix://" + filepath.Join(s.State, "containerd", "c.sock")}
	t.Cleanup(func() {
		if s.Cgroups == nil {
			return
		}
		group, err := s.Cgroups.Open("/" + engine.Prefix + user.RunID)
		if err == nil {
			err = group.Destroy(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return user
}

// A run with the user's own engine leaves the containers of other clients as they are.
func TestUsersOwnEngine(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	foreign := enginetest.Running(t, e, enginetest.Spec(s, "foreign"))

	user := usersOwn(t, s)
	d := cri.NewContainerd()
	handler := ""
	for _, c := range d.Candidates(t.Context(), user) {
		if name := c.Target.Runtime; strings.HasPrefix(name, "runc-") && c.Err == nil {
			handler = c.Target.String()
			if !strings.Contains(c.Version, "runc version") || c.Isolation != engine.SharedKernel {
				t.Errorf("candidate %+v", c)
			}
		} else if name == "crun" && !engine.Unsupported(c.Err) { // version 2 has a handler runc by itself
			t.Errorf("%s without a handler: %v, want a refusal", c.Target, c.Err)
		}
	}
	_, err := d.Open(t.Context(), parse(t, "containerd/crun"), user)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), strings.TrimPrefix(handler, "containerd/")) || !strings.Contains(err.Error(), "--managed") {
		t.Errorf("Open with a handler that there is not: %v", err)
	}
	if _, err = d.Open(t.Context(), parse(t, handler+"@x=y"), user); !engine.Unsupported(err) || !strings.Contains(err.Error(), "configuration") {
		t.Errorf("Open with options: %v", err)
	}
	other, err := d.Open(t.Context(), parse(t, handler), user)
	if err != nil {
		t.Fatal(err)
	}
	if service := other.(engine.DaemonBacked).Daemon(); len(service.PIDs) != 1 || service.Cgroup != nil {
		t.Errorf("the user's engine has the processes %+v, want the daemon alone", service)
	}
	// Its pods are in another network.
	bridged := enginetest.Spec(user, "bridged")
	bridged.Network = engine.Bridged
	if c, err := other.Create(t.Context(), bridged); !engine.Unsupported(err) {
		t.Errorf("Create of an unreachable bridged container: %v, %v", c, err)
	}
	mine, err := other.Create(t.Context(), enginetest.Spec(user, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	// A container of the same name that another client has made stays.
	taken := enginetest.Spec(user, "taken")
	taken.ID = foreign.ID()
	if _, err := other.Create(t.Context(), taken); err == nil || !strings.Contains(err.Error(), taken.ID) {
		t.Errorf("Create with a name that is taken: %v", err)
	}
	if err := errors.Join(mine.Delete(t.Context()), other.Close()); err != nil {
		t.Error(err)
	}
	if state, err := foreign.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the other container is %s, %v; want it as it was, running", state, err)
	}
	// The image existed before.
	second := enginetest.Running(t, e, enginetest.Spec(s, "second"))
	if err := second.Delete(t.Context()); err != nil {
		t.Error(err)
	}
}

// Sweep removes the remains of a killed run from the user's own engine, and no objects of other clients.
func TestSweep(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	foreign := enginetest.Running(t, e, enginetest.Spec(s, "foreign"))

	killed := usersOwn(t, s)
	d := cri.NewContainerd()
	handlers := d.Candidates(t.Context(), killed)
	i := slices.IndexFunc(handlers, func(c engine.Candidate) bool { return strings.HasPrefix(c.Target.Runtime, "runc-") && c.Err == nil })
	if i < 0 {
		t.Fatalf("no handler of the engine is a candidate: %v", handlers)
	}
	other, err := d.Open(t.Context(), handlers[i].Target, killed)
	if err != nil {
		t.Fatal(err)
	}
	if used, err := os.ReadFile(filepath.Join(s.State, engine.DaemonsDir, "containerd")); err != nil || string(used) != killed.Sockets["containerd"] {
		t.Errorf("that the engine is used is noted as %q, %v", used, err)
	}
	left := enginetest.Running(t, other, enginetest.Spec(killed, "left"))

	dead := engine.Session{RunID: killed.RunID, Sockets: killed.Sockets}
	for _, want := range []int{1, 0} { // the pod; the second time, nothing
		if removed, err := cri.NewContainerd().Sweep(t.Context(), dead); err != nil || removed != want {
			t.Errorf("Sweep = %d, %v; want %d", removed, err, want)
		}
	}
	if state, err := left.State(t.Context()); err == nil {
		t.Errorf("the killed run's container is %s", state)
	}
	if state, err := foreign.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the other container is %s, %v; want it as it was, running", state, err)
	}
	if err := errors.Join(left.Delete(t.Context()), foreign.Delete(t.Context()), other.Close()); err != nil {
		t.Error(err)
	}
	dead.RunID = s.RunID
	if removed, err := cri.NewContainerd().Sweep(t.Context(), dead); err != nil || removed != 1 {
		t.Errorf("Sweep of the run whose image it is = %d, %v; want 1, the image", removed, err)
	}
	dead.Sockets = map[string]string{"containerd": "/no/such/socket"}
	if _, err := cri.NewContainerd().Sweep(t.Context(), dead); err == nil || !strings.Contains(err.Error(), "/no/such/socket") {
		t.Errorf("Sweep of an engine that is not there: %v", err)
	}
}

// The exit of a private engine fails the trial. The engine is restarted once, and nothing is left behind.
func TestEngineThatDies(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	before := leftovers(s)
	die := func(c engine.Container) {
		t.Helper()
		daemon := e.(engine.DaemonBacked).Daemon().PIDs[0]
		ended := make(chan error)
		go func() {
			_, err := c.Wait(t.Context())
			ended <- err
		}()
		if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("Wait works although the engine has died")
		}
		if err := c.Delete(t.Context()); err == nil || !strings.Contains(err.Error(), "killed by signal 9") || !strings.Contains(err.Error(), "the end of its log") {
			t.Errorf("Delete with an engine that has died: %v", err)
		}
		if err := c.Delete(t.Context()); err != nil {
			t.Errorf("Delete again: %v", err)
		}
		for _, left := range enginetest.Surplus(before, leftovers(s)) {
			t.Errorf("%s is left", left)
		}
	}
	one, err := e.Create(t.Context(), enginetest.Spec(s, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	die(one)
	two, err := e.Create(t.Context(), enginetest.Spec(s, "two"))
	if err != nil {
		t.Fatalf("Create after the first death: %v", err)
	}
	die(two)
	if _, err := e.Create(t.Context(), enginetest.Spec(s, "three")); err == nil || !strings.Contains(err.Error(), "restarted once before") {
		t.Errorf("Create after the second death: %v", err)
	}
}

// A private engine that does not answer after a timeout is killed and started once more. The next container works, and nothing is left behind.
func TestEngineThatHangs(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	recoverer := e.(engine.Recoverer)
	if killed, err := recoverer.Recover(t.Context()); killed || err != nil {
		t.Fatalf("Recover of an engine that works: %v, %v", killed, err)
	}
	before := leftovers(s)
	one, err := e.Create(t.Context(), enginetest.Spec(s, "one"))
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Hang(t, e)
	if killed, err := recoverer.Recover(t.Context()); !killed || err != nil {
		t.Fatalf("Recover of a stopped engine: %v, %v", killed, err)
	}
	if err := one.Delete(t.Context()); err != nil {
		t.Errorf("Delete of a container from before: %v", err)
	}
	two := enginetest.Running(t, e, enginetest.Spec(s, "two"))
	if err := two.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	for _, left := range enginetest.Surplus(before, leftovers(s)) {
		t.Errorf("%s is left", left)
	}
}

// program writes a shell script in the place of containerd.
func program(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "containerd")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nif [ \"$1\" = --version ]; then echo containerd example 2.0.0; exit; fi\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEngineThatDoesNotStart(t *testing.T) {
	s := session(t, program(t, "echo no space left for me >&2\nexit 3\n"), "containerd/runc")
	d := cri.NewContainerd()
	for range 2 {
		_, err := d.Open(t.Context(), parse(t, "containerd/runc"), s)
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "no space left for me") {
			t.Errorf("Open: %v; want how it ended and the end of its log", err)
		}
	}
	for _, left := range leftovers(s) {
		t.Errorf("%s is left", left)
	}
}

func TestImageThatCannotBePulled(t *testing.T) {
	s := session(t, "", "containerd/runc")
	s.Registry.Forget(s.Registry.Probe())
	_, err := cri.NewContainerd().Open(t.Context(), parse(t, "containerd/runc"), s)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), s.Registry.Probe()) {
		t.Errorf("Open: %v; want it to name the image", err)
	}
}

// A full disk fails a pull, and the engine can still be closed.
func TestDiskFullAtUnpack(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk := t.TempDir()
	// The mount precedes the session, whose launcher may keep the mounts that it finds.
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=24m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s := session(t, "", "containerd/runc")
	s.Data = disk
	e := opened(t, s)
	ref, err := s.Registry.Fresh(t.Context(), 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	puller := e.(engine.Puller)
	if err := puller.Pull(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), ref) {
		t.Errorf("Pull: %v; want an error with the full disk and the image", err)
	}
	if err := puller.RemoveImage(t.Context(), ref); err != nil {
		t.Error(err)
	}
}

// Without an engine every candidate has the reason.
func TestNoEngine(t *testing.T) {
	s := session(t, "/no/such/containerd")
	for _, c := range cri.NewContainerd().Candidates(t.Context(), s) {
		if !engine.Unsupported(c.Err) {
			t.Errorf("%s: %v", c.Target, c.Err)
		}
	}
	if _, err := cri.NewContainerd().Open(t.Context(), parse(t, "containerd/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), "/no/such/containerd") {
		t.Errorf("Open: %v", err)
	}
	if _, err := cri.New("mine").Open(t.Context(), parse(t, "mine/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), "--cri mine=SOCKET") {
		t.Errorf("Open of an engine whose socket is not known: %v", err)
	}
}

// Many lives leave no descriptors, no goroutines and no files.
func TestNothingIsLeftOfManyLives(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	before := leftovers(s)
	enginetest.ManyLives(t, 6, s, e)
	for _, left := range enginetest.Surplus(before, leftovers(s)) {
		t.Errorf("%s is left", left)
	}
}

// The PID namespace of a pod and the grace of a kill follow the plan.
func TestPods(t *testing.T) {
	for _, c := range settingsCases() {
		t.Run(c.engine, func(t *testing.T) {
			s := session(t, "", c.targets...)
			s.Pods.SharePIDs = true // the configuration of CRI-O depends on it
			enginetest.Hold(t, c.driver, c.targets[0], s)
			for _, name := range c.targets {
				t.Run(name, func(t *testing.T) { checkPods(t, c.driver, name, s) })
			}
		})
	}
}

// The seccomp filter follows the plan.
func TestSeccomp(t *testing.T) {
	for _, c := range settingsCases() {
		t.Run(c.engine, func(t *testing.T) {
			s := session(t, "", c.targets...)
			enginetest.Hold(t, c.driver, c.targets[0], s)
			for _, name := range c.targets {
				t.Run(name, func(t *testing.T) { enginetest.Seccomp(t, c.driver, name, s, false) })
			}
		})
	}
}

type settingsCase struct {
	engine  string
	driver  *cri.Driver
	targets []string
}

func settingsCases() []settingsCase {
	return []settingsCase{
		{"containerd", cri.NewContainerd(), []string{"containerd/runc", "containerd/runsc"}},
		{"crio", cri.NewCRIO(), []string{"crio/runc", "crio/runsc"}},
	}
}

// All versions of containerd execute the same commands.
func TestRuntimeCommands(t *testing.T) {
	t.Run("containerd", func(t *testing.T) { enginetest.Commands(t, cri.NewContainerd(), session(t, "")) })
	for _, binary := range filepath.SplitList(os.Getenv(moreContainerds)) {
		t.Run(filepath.Base(filepath.Dir(binary)), func(t *testing.T) { enginetest.Commands(t, cri.NewContainerd(), session(t, binary)) })
	}
	t.Run("crio", func(t *testing.T) { enginetest.Commands(t, cri.NewCRIO(), session(t, "")) })
}
