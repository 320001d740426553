package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// took executes the plan and returns its time. Containers may be left: no call can remove a container whose deletion always hangs.
func (l *harness) took() (runner.Outcome, time.Duration) {
	l.Helper()
	start := l.clock.Now()
	out, err := runner.Run(l.Context(), l.config)
	if err != nil || out.Interrupted {
		l.Fatalf("Run() = %+v, %v", out, err)
	}
	return out, l.clock.Now().Sub(start)
}

// okOn counts the measured trials on a target that are ok.
func okOn(l *harness, target string) (n int) {
	for _, trial := range l.trials {
		if trial.Target == target && trial.Status == result.OK && !trial.Warmup {
			n++
		}
	}
	return n
}

// destroyed starts and destroys one container.
func destroyed(ctx context.Context, t bench.Trial) error {
	c, err := bench.Start(ctx, t)
	if err != nil {
		return err
	}
	_, _, err = c.Destroy(ctx, t)
	return err
}

// healthy are targets that fill a budget of ten minutes with ten blocks. A trial takes 20 s.
var healthy = []string{"fake/a@create=19s,start=900ms,delete=100ms", "fake/b@create=19s,start=900ms,delete=100ms", "fake/c@create=19s,start=900ms,delete=100ms"}

func tenMinutes(t *testing.T, targets ...string) *harness {
	l := newHarness(t, targets...)
	l.config.Budget, l.config.TrialLimit, l.config.CallLimit, l.config.Stop.Min = 10*time.Minute, 2*time.Minute, 30*time.Second, 100
	l.work("test.one.x", live)
	return l
}

// A target that hangs takes no more than a tenth of the others' blocks, and is quarantined with a reason.
//
// Invariant quarantine: A target that hangs is quarantined, and leaves the others nine tenths of their blocks.
func TestHangingTargetIsQuarantined(t *testing.T) {
	baseline := tenMinutes(t, healthy...)
	baseline.took()
	const bad = "fake/bad@hang=start+delete"
	for _, warmup := range []int{0, 1} {
		l := tenMinutes(t, append([]string{bad}, healthy...)...)
		l.config.Warmup = warmup
		out, took := l.took()
		for _, target := range healthy {
			if got, want := okOn(l, target)+warmup, okOn(baseline, target); 10*got < 9*want {
				t.Errorf("%s has %d blocks beside a target that hangs, and %d alone", target, got, want)
			}
		}
		if limit := l.config.Budget + l.config.CallLimit; took > limit {
			t.Errorf("the run took %v, want at most %v", took, limit)
		}
		var ends []string
		for _, trial := range l.trials {
			if trial.Target == bad {
				ends = append(ends, string(trial.Status))
			}
		}
		if got := strings.Join(ends, " "); got != "timeout skipped" {
			t.Errorf("the target's trials ended %s", got)
		}
		want := bad + " was quarantined after 2 timeouts, because one more container did not work: "
		if len(out.Caveats) == 0 || !strings.HasPrefix(out.Caveats[0], want) {
			t.Errorf("caveats %q", out.Caveats)
		}
		last := l.trials[len(l.trials)-1]
		for _, trial := range l.trials {
			if trial.Status == result.Skipped {
				last = trial
			}
		}
		if reason, _ := strings.CutPrefix(out.Caveats[0], bad+" was "); last.Reason != reason {
			t.Errorf("skipped because %q, and the caveat is %q", last.Reason, reason)
		}
	}
}

// A target whose kill does nothing is quarantined: the try-out kills its container, and waits for the exit. The fake clock moves only in calls, so
// the wait hangs instead.
//
// Invariant quarantine.
func TestTargetThatDoesNotKill(t *testing.T) {
	l := newHarness(t, "fake/bad@hang=wait", "fake/good")
	l.config.Budget, l.config.TrialLimit, l.config.CallLimit, l.config.Stop.Min = 3*time.Minute, 2*time.Minute, 30*time.Second, 10
	for i := range 4 {
		l.work(fmt.Sprintf("test.%d.x", i), destroyed)
	}
	_, took := l.took()
	if took > 90*time.Second {
		t.Errorf("the run took %v: two timeouts and a try-out take 70 s", took)
	}
	if got := okOn(l, "fake/good"); got != 40 {
		t.Errorf("the other target has %d blocks, want 40", got)
	}
	for _, trial := range l.trials {
		if trial.Target != "fake/good" && trial.Status == result.Skipped && !strings.HasPrefix(trial.Reason, "quarantined after 2 timeouts") {
			t.Errorf("skipped because %q", trial.Reason)
		}
	}
}

// Two timeouts alone quarantine no target: one more container works.
//
// Invariant quarantine.
func TestTryOutAcquits(t *testing.T) {
	l := newHarness(t, "fake/a@hang=start#1+start#3")
	l.config.Stop.Min = 5
	l.work("test.one.x", live)
	l.config.CallLimit = 30 * time.Second
	if out := l.ok(); out.Counts[result.OK] != 3 || out.Counts[result.Timeout] != 2 || len(out.Caveats) > 0 {
		t.Errorf("counts %v, caveats %q", out.Counts, out.Caveats)
	}
	if got := len(l.trials); got != 5 {
		t.Errorf("recorded %d trials, want 5 without the try-out: %v", got, spell(l.trials))
	}
}

// Fifty containers whose deletion hangs share one deadline.
//
// Invariant clean-up-deadline: A trial's clean-up has one deadline; then its cgroup is killed.
func TestCleanUpHasOneDeadline(t *testing.T) {
	for target, limit := range map[string]time.Duration{
		"fake/a@hang=delete":              55 * time.Second, // of a call, and ten of the clean-up, and ten of the try-out with its own
		"fake/a@hang=delete#1+delete#2":   45 * time.Second,
		"fake/a@hang=delete,create=500ms": 80 * time.Second,
	} {
		l := newHarness(t, target)
		l.config.TrialLimit, l.config.CallLimit = 2*time.Minute, 30*time.Second
		l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
			var containers []*bench.Running
			for range 50 {
				c, err := bench.Start(ctx, t)
				if err != nil {
					return err
				}
				containers = append(containers, c)
			}
			for _, c := range containers {
				if _, err := c.Remove(ctx, t); err != nil {
					return err
				}
			}
			return nil
		})
		_, took := l.took()
		trial := l.only()
		if trial.Status != result.Timeout || trial.Elapsed > limit {
			t.Errorf("%s: %s after %v of at most %v: %s", target, trial.Status, trial.Elapsed, limit, trial.Reason)
		}
		if took > limit+30*time.Second+30*time.Second {
			t.Errorf("%s: the run took %v", target, took)
		}
		if left := l.driver.Leftovers(); strings.Contains(target, "#") && len(left) > 0 {
			t.Errorf("%s: %d containers are left", target, len(left))
		}
	}
}

// A container that only a later call can remove is removed at the end of the run, and one that no call can remove is a caveat.
func TestLeftoversAreRemovedAtTheEnd(t *testing.T) {
	l := newHarness(t, "fake/a@fail=delete#1+delete#2")
	l.work("test.one.x", live)
	if out := l.ok(); len(out.Caveats) > 0 {
		t.Errorf("caveats %q", out.Caveats)
	}
	l = newHarness(t, "fake/a@fail=delete")
	l.work("test.one.x", live)
	out, _ := l.took()
	if want := "the container touchstone-" + runID + "-t1-00001 stays with fake/a@fail=delete: "; len(out.Caveats) != 1 || !strings.HasPrefix(out.Caveats[0], want) {
		t.Errorf("caveats %q, want %q", out.Caveats, want)
	}
}

// Whatever hangs at the end of the budget, the run exceeds it by at most the limit of a call.
//
// Invariant budget-limit: A run exceeds its budget by at most the limit of a call, also if a target hangs.
func TestBudgetHoldsInsideABlock(t *testing.T) {
	for _, call := range []string{"create", "start", "kill", "delete", "wait", "start+delete", "create+start+kill+delete+wait"} {
		for _, warmup := range []int{0, 2} {
			for _, limit := range []time.Duration{time.Second, 6 * time.Second, 30 * time.Second} {
				for _, budget := range []time.Duration{time.Second, 40 * time.Second, 45 * time.Second, 95 * time.Second} {
					l := newHarness(t, "fake/bad@hang="+call, "fake/good@create=150ms", "fake/slow@exit=1h")
					l.config.Budget, l.config.CallLimit, l.config.TrialLimit, l.config.Warmup, l.config.Stop.Min = budget, limit, 2*time.Hour, warmup, 1000
					l.work("test.one.x", live)
					l.work("test.two.x", destroyed)
					l.work("test.three.x", exit)
					out, took := l.took()
					if took > budget+limit {
						t.Errorf("hang=%s with a limit of %v and %d blocks of warm-up: the run took %v of a budget of %v", call, limit, warmup, took, budget)
					}
					if text := strings.Join(out.Caveats, "\n"); !strings.Contains(text, "the budget of ") {
						t.Errorf("caveats %q", out.Caveats)
					}
				}
			}
		}
	}
}

// The failed calls of failed trials are counted. An expected failure in a trial that is ok is no failure of the target.
func TestFailedCallsAreCounted(t *testing.T) {
	l := newHarness(t, "fake/a@fail=create#2+start#3,hang=start#1")
	l.config.Stop.Min = 5
	l.work("test.one.x", live)
	l.work("test.two.x", func(ctx context.Context, t bench.Trial) error {
		if _, err := t.Time(ctx, "exec", func(context.Context) error { return errBroken }); !errors.Is(err, errBroken) {
			return err
		}
		return nil
	})
	l.ok()
	got := map[string]int{}
	for _, trial := range l.trials {
		for call, n := range trial.FailedCalls {
			got[call] += n
		}
		if (trial.Status == result.OK) != (trial.FailedCalls == nil) {
			t.Errorf("trial %d is %s and has the failed calls %v", trial.Seq, trial.Status, trial.FailedCalls)
		}
	}
	expect.Equal(t, "failed calls", map[string]int{"create": 1, "start": 2}, got)
}

// served is an engine with a daemon of the run.
type recovering struct {
	engine.Engine
	hangs, broken bool
	recovered     int
}

func (s *recovering) Recover(context.Context) (kill bool, err error) {
	s.recovered++
	if s.broken {
		return true, errBroken
	}
	return s.hangs, nil
}

// After each trial with a timeout, a daemon that does not answer is started again.
//
// Invariant hanging-daemon.
func TestDaemonRecoversAfterATimeout(t *testing.T) {
	for _, tt := range []struct {
		served recovering
		want   []string
	}{
		{recovering{}, nil},
		{recovering{hangs: true}, []string{"the daemon of fake/a did not answer after a timeout, and was killed and started again"}},
		{recovering{broken: true}, []string{"the daemon of fake/a cannot be used after a timeout: " + errBroken.Error()}},
	} {
		l := newHarness(t, "fake/a@hang=start#2,fail=start#4")
		l.config.Stop.Min = 5
		tt.served.Engine = l.config.Targets[0].Engine
		l.config.Targets[0] = runner.Target{Name: "fake/a", Engine: &tt.served}
		l.work("test.one.x", live)
		out := l.ok()
		if diff := cmp.Diff(tt.want, out.Caveats); tt.served.recovered != 1 || diff != "" {
			t.Errorf("recovered %d times, want 1; caveats (-want +got):\n%s", tt.served.recovered, diff)
		}
	}
}

// A pull that hangs takes a fifth of the budget, and is tried twice for all benchmarks together.
func TestHangingPullIsTriedTwice(t *testing.T) {
	l := newHarness(t, "fake/bad@hang=pull", "fake/good")
	l.config.Budget, l.config.CallLimit, l.config.Stop.Min = 10*time.Minute, 30*time.Second, 10
	for i := range 4 {
		l.work(fmt.Sprintf("test.%d.x", i), live)
	}
	l.needsImage()
	_, took := l.took()
	if limit := 5 * time.Minute; took > limit {
		t.Errorf("the run took %v, want at most %v", took, limit)
	}
	if got := okOn(l, "fake/good"); got != 40 {
		t.Errorf("the other target has %d blocks, want 40", got)
	}
}
