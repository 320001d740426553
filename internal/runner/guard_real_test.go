package runner_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// A program without a limit of its own that takes more memory than the run may have is killed in the run's cgroup. The session checks that
// nothing is left.
func TestRealRunawayIsKilled(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
	}
	const limit, demand = 96, 256 // MiB
	l := newHarness(t)
	l.config.RunID, l.config.Cgroups = s.RunID, s.Cgroups
	l.config.Images[bench.ProbeImage] = runner.Image{Rootfs: s.Rootfs, Ref: s.Registry.Probe()}
	l.config.Targets = []runner.Target{{Name: "native", Engine: enginetest.Open(t, native.Driver{}, "native", s)}}
	l.config.Clock = meter.System{}
	l.config.Supply = guard.Supply{Memory: has(limit*mib+128*mib, gib)} // 128 MiB are the reserve
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		c, err := bench.Launch(ctx, t, t.Spec(probe.Grow(demand)...))
		if err != nil {
			return err
		}
		exit, err := c.Wait(ctx)
		if err != nil {
			return err
		}
		if exit.Signal != syscall.SIGKILL {
			return fmt.Errorf("the program ended with %v; it wrote %q", exit, c.Output.Bytes())
		}
		t.Record("Value", 1)
		return nil
	})
	l.ok()
	group, err := s.Cgroups.Open(s.Cgroup())
	must.Do(t, err)
	if missing := group.Missing(); len(missing) > 0 {
		t.Skipf("the host has no controllers %q", missing)
	}
	if trial := l.only(); trial.Status != result.OK {
		t.Errorf("%s because %q", trial.Status, trial.Reason)
	}
}
