package docker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// limits reads the limits of the only container below a cgroup.
func limits(t *testing.T, s engine.Session, group string) string {
	t.Helper()
	return enginetest.Limits(t, s, group+"/"+strings.Repeat("[0-9a-f]", 64))
}

// Containers have the requested limits and the requested cgroup, also with runtimes that read Docker's zeros differently. All
// targets share one daemon, which stops with the last of them.
func TestLimitsAndCgroup(t *testing.T) {
	s, socket := private(t)
	driver := docker.NewDriver()
	var engines []engine.Engine
	for _, name := range []string{"docker/runc", "docker/crun", "docker/youki", "docker/runsc"} {
		e, err := enginetest.Attempt(t, driver, name, s)
		enginetest.Require(t, name, err)
		engines = append(engines, e)
	}
	for n, e := range engines {
		group := fmt.Sprintf("/%s%s/t%d", engine.Prefix, s.RunID, n)
		p, ok := e.(engine.CgroupPlacer)
		if !ok {
			t.Fatalf("%s is no CgroupPlacer", e.Info().Target)
		}
		if err := p.SetCgroupParent(group); err != nil {
			t.Fatal(err)
		}
		sp := enginetest.Spec(s, fmt.Sprint("limits", n))
		sp.Resources = engine.Resources{CPU: 0.5, Memory: 64 << 20}
		c := enginetest.Running(t, e, sp)
		if got, want := limits(t, s, group), fmt.Sprint("50000 100000 ", 64<<20); got != want {
			t.Errorf("%s: limits at creation are %q, want %q", e.Info().Target, got, want)
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
				t.Fatalf("%s: Update(%+v): %v", e.Info().Target, tt.limits, err)
			}
			if got := limits(t, s, group); got != tt.want {
				t.Errorf("%s: limits after Update(%+v) are %q, want %q", e.Info().Target, tt.limits, got, tt.want)
			}
		}
		if err := c.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
	service := engines[0].(engine.DaemonBacked).Daemon()
	if service.Cgroup == nil || len(service.PIDs) < 2 {
		t.Errorf("the private daemon and its containerd are reported as %+v", service)
	}
	if err := engines[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("the daemon has exited although a target uses it: %v", err)
	}
	for _, e := range engines[1:] {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the daemon still runs although no target uses it")
	}
}

// The daemon's state of a container may be wrong for a moment after a pause or a resume, and the daemon then refuses the next
// one. Here another client makes the state wrong, and right again when the request was refused.
func TestRefusedPauseIsRepeated(t *testing.T) {
	s, socket := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	c, err := e.Create(t.Context(), engine.Spec{
		ID: engine.Prefix + s.RunID + "-pause", Rootfs: s.Rootfs, Image: s.Registry.Probe(), Process: engine.Process{Args: workload.Ready()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := connect(t, socket)
	// The daemon may refuse these requests for a moment too.
	pause := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = other.ContainerPause(t.Context(), c.ID(), client.ContainerPauseOptions{})
		}
	}
	unpause := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = other.ContainerUnpause(t.Context(), c.ID(), client.ContainerUnpauseOptions{})
		}
	}
	// The daemon handles the event of a process's exit after all events of pauses before it.
	settle := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = c.(engine.Execer).Exec(t.Context(), engine.Process{Args: workload.Exit(0)})
		}
	}
	p := c.(engine.Pauser)
	for _, tt := range []struct {
		name         string
		call         func(context.Context) error
		wrong, right func()
	}{
		{"Pause", p.Pause, pause, unpause},
		{"Resume", p.Resume, func() { unpause(); settle() }, pause},
	} {
		tt.wrong()
		var refused, accepted int
		var changed sync.WaitGroup
		ctx := engine.WithStopwatch(t.Context(), func(_ string, call func() error) error {
			err := call()
			switch {
			case err == nil:
				accepted++
			case errors.Is(err, engine.ErrRefused):
				if refused++; refused == 1 {
					changed.Go(tt.right)
				}
			}
			return err
		})
		err := tt.call(ctx)
		changed.Wait()
		if err != nil || refused == 0 || accepted != 1 {
			t.Errorf("%s = %v; %d requests were refused and %d accepted, want some and one", tt.name, err, refused, accepted)
		}
	}
	if err := p.Resume(t.Context()); err == nil || errors.Is(err, engine.ErrRefused) {
		t.Errorf("Resume of a running container: %v, want the daemon's refusal", err)
	}
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
func TestOtherPlatformIsAFailure(t *testing.T) {
	s, _ := private(t)
	enginetest.OtherPlatform(t, docker.NewDriver(), "docker/runsc@platform=kvm", s)
}

// An exec for which gVisor gives no reason has the known cause.
func TestSilentExec(t *testing.T) {
	cells.Need(t, "docker/silent-exec")
	s, _ := private(t)
	enginetest.SilentExec(t, docker.NewDriver(), "docker/runsc", s)
}

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m))
}

// Many lives, and creations that are cancelled at random moments, leave no descriptors, no goroutines, no containers and no
// cgroups.
func TestNothingIsLeftOfManyLives(t *testing.T) {
	s, socket := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	before := remains(t, s, socket)
	enginetest.ManyLives(t, 15, s, e)
	enginetest.GivenUp(t, 20, 2*time.Millisecond, s, e)
	for _, left := range enginetest.Surplus(before, remains(t, s, socket)) {
		t.Errorf("%s is left behind", left)
	}
}

// A refusal contains the target and the remedy.
func TestOpenRefuses(t *testing.T) {
	s, _ := private(t)
	driver := docker.NewDriver()
	s.Runtimes = map[string]target.Runtime{
		"broken": {Path: "/bin/false"}, "shim": {Type: "io.containerd.no-such-shim.v2"},
	}
	enginetest.Open(t, driver, "docker/runc", s) // keeps the daemon running
	for name, want := range map[string]string{
		"docker/no-such-runtime":  "no-such-runtime is not on PATH",
		"docker/broken":           "ended with exit code 1",
		"docker/runc@root=/x":     "is set by Touchstone itself",
		"docker/runc@debug-x=yes": "was started without this target",
		"docker/shim":             "docker has no runtime io.containerd.no-such-shim.v2",
		"docker/shim@a=b":         "cannot pass options to a containerd shim",
	} {
		e, err := enginetest.Attempt(t, driver, name, s)
		if err == nil {
			t.Errorf("%s opens", name)
			_ = e.Close()
			continue
		}
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("open %s: %v; want a refusal with %q", name, err, want)
		}
	}
}

// The seccomp filter follows the plan.
func TestSeccomp(t *testing.T) {
	s, _ := private(t)
	enginetest.Seccomp(t, docker.NewDriver(), "docker/runc", s, true)
}

func TestRuntimeCommands(t *testing.T) {
	s, _ := private(t)
	enginetest.Commands(t, docker.NewDriver(), s)
}
