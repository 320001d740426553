package runner_test

import (
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The budget of a resumed run includes the trials of the earlier process.
//
// Invariant budget-sum: The budget of a run includes its trials in earlier processes.
func TestBudgetCountsEarlierTrials(t *testing.T) {
	reference := newHarness(t, "fake/a")
	reference.config.Stop.Min, reference.config.Budget = 100, 100*ms // a trial takes 23 ms
	reference.work("test.one.x", live)
	out := reference.ok()

	first := newHarness(t, "fake/a")
	first.config.Stop.Min, first.config.Budget = 100, 100*ms
	first.work("test.one.x", live)
	first.interruptAfter(3)
	second := first.again()
	resumed := second.ok()
	if got, want := len(first.trials)+len(second.trials), len(reference.trials); got != want {
		t.Errorf("the resumed run has %d trials, the uninterrupted one %d", got, want)
	}
	expect.Equal(t, "cut of the uninterrupted (-) and the resumed (+) run", out.Caveats, resumed.Caveats)
	if p := second.at[0]; p.Done != 3 || p.Left != 31*ms { // 100 ms − 3 × 23 ms
		t.Errorf("the progress of the resumed run is %+v, want 3 trials done and 31 ms left", p)
	}
	spent := second.again()
	spent.config.Budget = 50 * ms
	out = spent.ok()
	if len(spent.trials) > 0 {
		t.Errorf("a run that has spent its budget has %d more trials after %v", len(spent.trials), 4*23*time.Millisecond)
	}
	expect.Equal(t, "caveats of a run that has spent its budget", []string{"the budget of 50ms ended after 4 of 100 blocks"}, out.Caveats)
	complete := second.again()
	complete.config.Stop.Min, complete.config.Budget = 4, 50*ms
	if out := complete.ok(); len(out.Caveats) > 0 {
		t.Errorf("a complete run that has spent its budget has the caveats %q", out.Caveats)
	}
}

// A benchmark may have more blocks of its own than the run. A budget that ends before them is no lack of precision.
func TestBudgetCutsBlocksOfOneBenchmark(t *testing.T) {
	l := newHarness(t, "fake/a@create=20ms,start=0s")
	l.config.Stop, l.config.Budget = stats.StopRule{Min: 2, Max: 2}, 60*ms
	l.work("test.one.x", live)
	l.config.Work[0].Blocks = 9
	expect.Equal(t, "caveats", []string{"the budget of 60ms ended after 2 of 9 blocks"}, l.ok().Caveats)
}
