package cri_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// opened opens a target of a private containerd.
func opened(t *testing.T, s engine.Session) engine.Engine {
	t.Helper()
	return enginetest.Open(t, cri.NewContainerd(), "containerd/runc", s)
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
//
// Invariant kvm-platform.
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
	must.Do(t, err)
	want("Create", "RunPodSandbox", "CreateContainer")
	enginetest.Check(t, c.Start(ctx))
	want("Start", "StartContainer")
	if err := c.Kill(ctx, syscall.SIGUSR1); err == nil || !strings.Contains(err.Error(), "CRI has no call that sends signal") {
		t.Errorf("Kill with a signal that CRI does not have: %v", err)
	}
	want("Kill with such a signal")
	enginetest.Check(t, c.Kill(ctx, syscall.SIGKILL))
	want("Kill", "StopContainer")
	if _, err := c.Wait(ctx); err != nil {
		t.Error(err)
	}
	want("Wait", "") // the exit event
	enginetest.Check(t, c.Delete(ctx))
	want("Delete", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox")
}

// usersOwn returns the session of another run. The private engine of this session is the user's own there.
func usersOwn(t *testing.T, s engine.Session) engine.Session {
	t.Helper()
	user := enginetest.OtherRun(t, s)
	user.Managed, user.Targets = false, nil
	user.Sockets = map[string]string{"containerd": "unix://" + filepath.Join(s.State, "containerd", "c.sock")}
	return user
}

// A run with the user's own engine leaves the containers of other clients as they are.
//
// Invariant foreign-objects: In the user's daemon, only objects with the run's label and name are removed, also if the daemon ignores filters.
func TestUsersOwnEngine(t *testing.T) {
	s := session(t, "", "containerd/runc")
	e := opened(t, s)
	stranger := enginetest.Running(t, e, enginetest.Spec(s, "foreign"))

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
	_, err := d.Open(t.Context(), enginetest.Parse(t, "containerd/crun"), user)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), strings.TrimPrefix(handler, "containerd/")) || !strings.Contains(err.Error(), "--managed") {
		t.Errorf("Open with a handler that there is not: %v", err)
	}
	if _, err = d.Open(t.Context(), enginetest.Parse(t, handler+"@x=y"), user); !engine.Unsupported(err) || !strings.Contains(err.Error(), "configuration") {
		t.Errorf("Open with options: %v", err)
	}
	userEngine, err := d.Open(t.Context(), enginetest.Parse(t, handler), user)
	must.Do(t, err)
	if service := userEngine.(engine.DaemonBacked).Daemon(); len(service.PIDs) != 1 || service.Cgroup != nil {
		t.Errorf("the user's engine has the processes %+v, want the daemon alone", service)
	}
	// Its pods are in another network.
	bridged := enginetest.Spec(user, "bridged")
	bridged.Network = engine.Bridged
	if c, err := userEngine.Create(t.Context(), bridged); !engine.Unsupported(err) {
		t.Errorf("Create of an unreachable bridged container: %v, %v", c, err)
	}
	mine, err := userEngine.Create(t.Context(), enginetest.Spec(user, "mine"))
	must.Do(t, err)
	// A container of the same name that another client has made stays.
	duplicate := enginetest.Spec(user, "taken")
	duplicate.ID = stranger.ID()
	if _, err := userEngine.Create(t.Context(), duplicate); err == nil || !strings.Contains(err.Error(), duplicate.ID) {
		t.Errorf("Create with a name that is taken: %v", err)
	}
	enginetest.Check(t, errors.Join(mine.Delete(t.Context()), userEngine.Close()))
	if state, err := stranger.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the other container is %s, %v; want it as it was, running", state, err)
	}
	// The image existed before.
	second := enginetest.Running(t, e, enginetest.Spec(s, "second"))
	enginetest.Check(t, second.Delete(t.Context()))
}

func TestEngineThatDies(t *testing.T) {
	s := session(t, "", "containerd/runc")
	enginetest.DaemonDies(t, s, opened(t, s), func() []string { return leftovers(s) })
}

// Invariant hanging-daemon.
func TestEngineThatHangs(t *testing.T) {
	s := session(t, "", "containerd/runc")
	enginetest.DaemonHangs(t, s, opened(t, s), func() []string { return leftovers(s) })
}

func TestEngineThatDoesNotStart(t *testing.T) {
	s := session(t, "", "containerd/runc")
	enginetest.DaemonFails(t, cri.NewContainerd(), "containerd/runc", s, "containerd")
	for _, left := range leftovers(s) {
		t.Errorf("%s is left", left)
	}
}

func TestImageThatCannotBePulled(t *testing.T) {
	s := session(t, "", "containerd/runc")
	s.Registry.Forget(s.Registry.Probe())
	_, err := cri.NewContainerd().Open(t.Context(), enginetest.Parse(t, "containerd/runc"), s)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), s.Registry.Probe()) {
		t.Errorf("Open: %v; want it to name the image", err)
	}
}

// A full disk fails a pull, and the engine can still be closed.
func TestDiskFullAtUnpack(t *testing.T) {
	disk := enginetest.SmallDisk(t)
	s := session(t, "", "containerd/runc")
	s.Data = disk
	enginetest.DiskFull(t, s, opened(t, s))
}

// Without an engine every candidate has the reason.
func TestNoEngine(t *testing.T) {
	s := session(t, "/no/such/containerd")
	for _, c := range cri.NewContainerd().Candidates(t.Context(), s) {
		if !engine.Unsupported(c.Err) {
			t.Errorf("%s: %v", c.Target, c.Err)
		}
	}
	if _, err := cri.NewContainerd().Open(t.Context(), enginetest.Parse(t, "containerd/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), "/no/such/containerd") {
		t.Errorf("Open: %v", err)
	}
	if _, err := cri.New("mine").Open(t.Context(), enginetest.Parse(t, "mine/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), "--cri mine=SOCKET") {
		t.Errorf("Open of an engine whose socket is not known: %v", err)
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
