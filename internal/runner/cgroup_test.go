package runner_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// placed is a fake engine that records its cgroup parents.
type placed struct {
	engine.Engine
	groups []string
	place  func(group string) error
}

func (p *placed) SetCgroupParent(group string) error {
	p.groups = append(p.groups, group)
	return p.place(group)
}

// notBack is a place whose engine stays in the cgroup of the trial.
func notBack(group string) error {
	if group == "" {
		return errBroken
	}
	return nil
}

func newPlaced(t *testing.T) (*harness, *placed) {
	t.Helper()
	groups, err := cgroup.Detect("/")
	must.Do(t, err)
	if groups.Base() == "" {
		t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
	}
	l := newHarness(t, "fake/a")
	p := &placed{Engine: l.config.Targets[0].Engine, place: func(string) error { return nil }}
	l.config.Targets[0].Engine = p
	l.config.Cgroups = groups
	// This is not the name of a run, so that no sweep removes it.
	l.config.RunID = "test-" + strings.ToLower(rand.Text()[:8])
	l.work("test.one.x", func(context.Context, bench.Trial) error { return nil })
	t.Cleanup(func() {
		group, err := groups.Open("/" + engine.Prefix + l.config.RunID)
		must.Do(t, err)
		must.Do(t, group.Destroy(context.WithoutCancel(t.Context())))
	})
	return l, p
}

// left lists the existing cgroups of trials.
func left(l *harness) (dirs []string) {
	for _, m := range l.config.Cgroups.Mounts {
		found, _ := filepath.Glob(filepath.Join(m.Dir, l.config.Cgroups.Base(), engine.Prefix+l.config.RunID, "t[0-9]*"))
		dirs = append(dirs, found...)
	}
	return dirs
}

// Invariant native-cgroup: native runs in a cgroup of its own, beside the containers'.
func TestEachTrialHasItsOwnCgroup(t *testing.T) {
	l, p := newPlaced(t)
	l.config.Stop.Min = 2
	count := 0
	l.config.Work[0].Benchmark.Run = func(_ context.Context, t bench.Trial) error {
		if len(left(l)) > 0 {
			count++
		}
		_, err := t.Cost.Usage()
		return err
	}
	l.ok()
	top := "/" + engine.Prefix + l.config.RunID
	expect.Equal(t, "placed in", []string{top + "/t1", "", top + "/t2", ""}, p.groups)
	if dirs := left(l); count != 2 || len(dirs) > 0 {
		t.Errorf("%d of 2 trials had a group; left are %q", count, dirs)
	}
	for _, trial := range l.trials {
		if trial.Status != result.OK {
			t.Errorf("trial %d: %s", trial.Seq, trial.Reason)
		}
	}
}

// SetCgroupParent fails halfway. Later trials must not run in the trial's cgroup, and that cgroup must be removed.
func TestSetCgroupParentFailsHalfway(t *testing.T) {
	l, p := newPlaced(t)
	l.config.Stop.Min = 2
	ran := false
	l.config.Work[0].Benchmark.Run = func(context.Context, bench.Trial) error {
		ran = true
		return nil
	}
	p.place = func(group string) error {
		if !strings.HasSuffix(group, "/t1") {
			return nil
		}
		if _, err := l.config.Cgroups.Create(group + "/host"); err != nil {
			t.Error(err)
		}
		ran = false
		return errBroken
	}
	l.ok()
	if first := l.trials[0]; first.Status != result.Failed || first.Reason != errBroken.Error() {
		t.Errorf("%s because %q, want failed because %q", first.Status, first.Reason, errBroken)
	}
	if second := l.trials[1]; second.Status != result.OK || !ran {
		t.Errorf("the next trial: %s because %q", second.Status, second.Reason)
	}
	if top := "/" + engine.Prefix + l.config.RunID; !cmp.Equal(p.groups, []string{top + "/t1", "", top + "/t2", ""}) {
		t.Errorf("placed in %q", p.groups)
	}
	if dirs := left(l); len(dirs) > 0 {
		t.Errorf("left are %q", dirs)
	}
}

func TestResetOfCgroupParentFails(t *testing.T) {
	l, p := newPlaced(t)
	p.place = notBack
	l.ends(result.Failed, "clean up: "+errBroken.Error())
	if dirs := left(l); len(dirs) > 0 {
		t.Errorf("left are %q", dirs)
	}
}

// An existing cgroup cannot serve a trial: its counters include other processes.
func TestExistingCgroup(t *testing.T) {
	l, p := newPlaced(t)
	if _, err := l.config.Cgroups.Create("/" + engine.Prefix + l.config.RunID + "/t1"); err != nil {
		t.Fatal(err)
	}
	l.ends(result.Failed, "t1: file exists")
	if len(p.groups) > 0 {
		t.Errorf("placed in %q", p.groups)
	}
}

// Benchmarks with a limit are skipped if the kernel lacks its controller, as many boards lack the memory controller.
//
// Invariant missing-controller.
func TestLimitWithoutController(t *testing.T) {
	for controller, limits := range map[string]engine.Resources{"memory": {Memory: 64 << 20}, "cpu": {CPU: 0.5}, "pids": {PIDs: 64}} {
		t.Run(controller, func(t *testing.T) {
			l, _ := newPlaced(t)
			for i, m := range l.config.Cgroups.Mounts {
				l.config.Cgroups.Mounts[i].Controllers = slices.DeleteFunc(m.Controllers, func(c string) bool { return c == controller })
			}
			l.config.Work[0].Benchmark.Run = func(ctx context.Context, t bench.Trial) error {
				spec := t.Spec(probe.Exit(0)...)
				spec.Resources = limits
				_, _, err := t.Create(ctx, spec)
				return err
			}
			l.ends(result.Skipped, "the kernel offers no "+controller+" cgroup controller")
		})
	}
}
