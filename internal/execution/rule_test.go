package execution

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

func decidingPlan(t *testing.T, targets ...string) plan.Plan {
	t.Helper()
	p, err := plan.Quick().Apply(plan.Overrides{
		Targets: targets, Filters: []string{"operations.container.lifecycle"}, Blocks: new(10), MaxBlocks: new(60), Until: new("decided"), Seed: new(uint64(1)),
	})
	must.Do(t, err)
	return p
}

// The rule and the cells that it ended are in the store. The second run has an estimate before its first trial.
func TestUntilDecided(t *testing.T) {
	const spec = "fake/slow@create=60ms,delete=40ms,jitter=0.03,start=30ms"
	f := newFrontEnd(t)
	var o recorder
	if _, err := f.execute(t.Context(), decidingPlan(t, "fake/base@jitter=0.03", spec), nil, &o); err != nil {
		t.Fatal(err)
	}
	run, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	rule := run.Stopping
	if rule == nil || len(rule.Looks) < 5 || rule.Looks[0] != 10 || rule.Looks[len(rule.Looks)-1] != 60 || rule.Comparisons == 0 || len(rule.Stopped) != 2 {
		t.Fatalf("the rule in the store is %+v", rule)
	}
	first, last := rule.Stopped[0], rule.Stopped[1]
	if first.Target != spec || first.Reason != result.Decided || last.Target != "fake/base@jitter=0.03" || last.Reason != result.AllStopped || first.Blocks >= 60 {
		t.Errorf("stopped: %+v", rule.Stopped)
	}
	for _, trial := range run.Trials {
		if trial.Block >= first.Blocks {
			t.Errorf("%s has the block %d after %d blocks", trial.Target, trial.Block, first.Blocks)
		}
	}
	if !o.mentions("ended after") || !o.mentions("the run takes at most about") || !strings.Contains(strings.Join(run.Caveats, "\n"), "2 cells ended before 60 blocks by the rule of the plan (1 decided, 1 all others stopped)") {
		t.Errorf("events %+v, caveats %q", o.events, run.Caveats)
	}
}

// A resumed run keeps the list of the cells that its first part ended.
func TestResumedRunKeepsStoppedCells(t *testing.T) {
	targets := []string{"fake/base@jitter=0.03", "fake/slow@create=60ms,delete=40ms,jitter=0.03,start=30ms", "fake/equal@jitter=0.03,seed=2"}
	f := newFrontEnd(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	o := recorder{ended: func(trial result.Trial) {
		if trial.Block == 55 {
			interrupt(errStop)
		}
	}}
	if _, err := f.execute(ctx, decidingPlan(t, targets...), nil, &o); err != nil {
		t.Fatal(err)
	}
	predecessor, err := f.db.Run(t.Context(), "run")
	if err != nil || len(predecessor.Stopping.Stopped) != 1 {
		t.Fatalf("%v: the first part stopped %+v", err, predecessor.Stopping)
	}
	want := *predecessor.Stopping
	p, err := ResumedPlan(predecessor)
	must.Do(t, err)
	if _, err := f.execute(t.Context(), p, &predecessor, &recorder{}); err != nil {
		t.Fatal(err)
	}
	got, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	expect.Equal(t, "the rule of the first part (-) and of the whole run (+)", want, *got.Stopping)
	if got.State != result.Complete {
		t.Errorf("the run is %s", got.State)
	}
}

func TestUntilDecidedNeedsTwoTargetsThatWork(t *testing.T) {
	f := newFrontEnd(t)
	_, err := f.execute(t.Context(), decidingPlan(t, "fake/a", "fake/broken@fail=open"), nil, &recorder{})
	if isUsage(err) || !strings.Contains(err.Error(), "only fake/a is available; add a target") {
		t.Errorf("one of two targets works: %v", err)
	}
}

func TestEstimateText(t *testing.T) {
	for want, p := range map[string]runner.Progress{
		"the run takes about 20s more":                                                 {Left: 20 * time.Second, Least: 20 * time.Second},
		"the run takes at most about 1m0s more, and at least about 20s":                {Left: time.Minute, Least: 20 * time.Second, AtMost: true},
		"the run takes at most about 2s more":                                          {Left: 2 * time.Second, Least: time.Millisecond, AtMost: true},
		"the run takes less than a second more":                                        {Left: 300 * time.Millisecond, Least: time.Millisecond, AtMost: true},
		"the run takes about 4m0s more: its budget is enough for about 9 of 13 blocks": {Left: 4 * time.Minute, Blocks: 9, Goal: 13},
		"the run takes about 4m0s more: its budget is enough for about 8 of 13 blocks, and a difference between 13 targets is shown from 9 on; " +
			"raise the budget, or measure fewer targets or benchmarks": {Left: 4 * time.Minute, Blocks: 8, Goal: 13},
		"the run takes about 1m0s more: its budget is enough for about 2 of 3 blocks": {Left: time.Minute, Blocks: 2, Goal: 3},
		"the run takes about 30s more": {Left: 30 * time.Second, Least: 30*time.Second - 1, AtMost: true},
	} {
		if got := estimate(p, 13); got != want {
			t.Errorf("the estimate of %+v is %q, want %q", p, got, want)
		}
	}
}
