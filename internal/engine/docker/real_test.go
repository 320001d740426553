package docker_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// The daemon's state of a container may be wrong for a moment after a pause or a resume, and the daemon then refuses the next
// one. Here another client makes the state wrong, and right again when the request was refused.
func TestRefusedPauseIsRepeated(t *testing.T) {
	s, socket := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	c, err := e.Create(t.Context(), engine.Spec{
		ID: engine.Prefix + s.RunID + "-pause", Rootfs: s.Rootfs, Image: s.Registry.Probe(), Process: engine.Process{Args: probe.Ready()},
	})
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, c.Delete(context.WithoutCancel(t.Context()))) })
	must.Do(t, c.Start(t.Context()))
	secondClient := connect(t, socket)
	// The daemon may refuse these requests for a moment too.
	pause := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = secondClient.ContainerPause(t.Context(), c.ID(), client.ContainerPauseOptions{})
		}
	}
	unpause := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = secondClient.ContainerUnpause(t.Context(), c.ID(), client.ContainerUnpauseOptions{})
		}
	}
	// The daemon handles the event of a process's exit after all events of pauses before it.
	settle := func() {
		for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
			_, err = c.(engine.Execer).Exec(t.Context(), engine.Process{Args: probe.Exit(0)})
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
		var refusals, accepted int
		var wg sync.WaitGroup
		ctx := engine.WithStopwatch(t.Context(), func(_ string, call func() error) error {
			err := call()
			switch {
			case err == nil:
				accepted++
			case errors.Is(err, engine.ErrRefused):
				if refusals++; refusals == 1 {
					wg.Go(tt.right)
				}
			}
			return err
		})
		err := tt.call(ctx)
		wg.Wait()
		if err != nil || refusals == 0 || accepted != 1 {
			t.Errorf("%s = %v; %d requests were refused and %d accepted, want some and one", tt.name, err, refusals, accepted)
		}
	}
	if err := p.Resume(t.Context()); err == nil || errors.Is(err, engine.ErrRefused) {
		t.Errorf("Resume of a running container: %v, want the daemon's refusal", err)
	}
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
//
// Invariant kvm-platform.
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
