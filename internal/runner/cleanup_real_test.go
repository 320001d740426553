package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// stubborn is an engine whose containers are removed only after their processes were killed by somebody else.
type stubborn struct {
	engine.Engine
	engine.CgroupPlacer
}

func (s stubborn) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	c, err := s.Engine.Create(ctx, spec)
	return &stuck{Container: c}, err
}

type stuck struct {
	engine.Container
	hung bool
}

func (c *stuck) Delete(ctx context.Context) error {
	if !c.hung {
		c.hung = true
		<-ctx.Done()
		return context.Cause(ctx)
	}
	exit, err := c.Wait(ctx)
	if err == nil && exit.Signal != syscall.SIGKILL {
		err = fmt.Errorf("the process ended with %v", exit)
	}
	return errors.Join(err, c.Container.Delete(ctx))
}

// The processes in a trial's cgroup are killed when the deadline of the clean-up has passed, and the containers are removed then. The session
// checks that nothing is left.
//
// Invariant clean-up-deadline.
func TestRealCleanUpKillsTheCgroup(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
	}
	l := newHarness(t)
	l.config.RunID, l.config.Cgroups = s.RunID, s.Cgroups
	l.config.Images[bench.ProbeImage] = runner.Image{Rootfs: s.Rootfs, Ref: s.Registry.Probe()}
	e := enginetest.Open(t, native.Driver{}, "native", s)
	l.config.Targets = []runner.Target{{Name: "native", Engine: stubborn{e, e.(engine.CgroupPlacer)}}}
	l.config.Clock, l.config.CallLimit = meter.System{}, 3*time.Second
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		for range 3 {
			if _, err := bench.Start(ctx, t); err != nil {
				return err
			}
		}
		t.Record("Value", 1)
		return nil
	})
	out := l.ok()
	if trial := l.only(); trial.Status != result.Timeout || !strings.Contains(trial.Reason, "the clean-up took longer") {
		t.Errorf("%s because %q", trial.Status, trial.Reason)
	}
	if len(out.Caveats) > 0 {
		t.Errorf("caveats %q", out.Caveats)
	}
}
