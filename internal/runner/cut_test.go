package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func unavailable(name string) runner.Target {
	return runner.Target{Name: name, Err: &engine.UnsupportedError{What: name, Reason: "it is not on PATH", Advice: "install it"}}
}

// Invariant unsupported: A target that cannot do something is skipped with the reason, never aborted and never zero.
func TestImpossibleCellsAreSkippedOnce(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/less@no=exec")
	l.config.Stop.Min, l.config.Warmup = 3, 1
	l.config.Targets = append(l.config.Targets, unavailable("oci/none"))
	l.work("test.one.x", live)
	l.config.Work[0].Benchmark.Needs = bench.Always(engine.CanPause, engine.CanExec)
	out := l.ok()
	reasons := map[string][]string{}
	for _, trial := range l.trials {
		if trial.Status == result.Skipped {
			reasons[trial.Target] = append(reasons[trial.Target], trial.Reason)
		}
	}
	want := map[string][]string{
		"fake/less@no=exec": {"exec: taken away by the target's option no"},
		"oci/none":          {"oci/none: it is not on PATH; install it"},
	}
	expect.Equal(t, "reasons of skipped trials", want, reasons)
	expect.Equal(t, "counts", map[result.Status]int{result.OK: 4, result.Skipped: 2}, out.Counts)
}

// A benchmark may detect only while it runs that a target does not support it.
//
// Invariant unsupported.
func TestSkippedByTheBenchmark(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/less@no=exec")
	l.config.Stop.Min = 3
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		if err := live(ctx, t); err != nil {
			return err
		}
		return t.Require(bench.Needs{Capabilities: []engine.Capability{engine.CanExec}})
	})
	out := l.ok()
	expect.Equal(t, "counts", map[result.Status]int{result.OK: 3, result.Skipped: 1}, out.Counts)
	for _, trial := range l.trials {
		if trial.Status == result.Skipped && len(trial.Samples) > 0 {
			t.Errorf("a skipped trial has the samples %v", trial.Samples)
		}
	}
}

func TestGivenUp(t *testing.T) {
	for _, tt := range []struct {
		target string
		warmup int
		want   string // results of the target's trials, warm-up in capitals
	}{
		{"fake/bad@fail=create", 0, "fffs"},
		{"fake/bad@fail=create", 2, "FFfs"},
		{"fake/bad@fail=create", 4, "FFFS"},
		{"fake/bad@hang=start#1+start#2", 0, "tts"}, // the try-out works
		{"fake/bad@fail=create#1+create#2+create#4+create#5", 0, "ffoffooo"},
		{"fake/bad@fail=create#1+create#3+create#4,hang=create#2", 0, "ftfs"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			l := newHarness(t, tt.target, "fake/good")
			l.config.Stop.Min, l.config.Warmup = 8, tt.warmup
			l.work("test.one.x", live)
			l.work("test.two.x", func(context.Context, bench.Trial) error { return nil })
			out := l.ok()
			letters := map[result.Status]string{result.OK: "o", result.Failed: "f", result.Timeout: "t", result.Skipped: "s"}
			got, good := "", 0
			for _, trial := range l.trials {
				letter := letters[trial.Status]
				if trial.Warmup {
					letter = strings.ToUpper(letter)
				}
				switch {
				case trial.Target != tt.target:
					good++
				case trial.Benchmark == "test.one.x":
					got += letter
				}
			}
			if got != tt.want {
				t.Errorf("the target's trials end %s, want %s", got, tt.want)
			}
			if want := 2 * (8 + tt.warmup); good != want {
				t.Errorf("the other target has %d trials, want %d", good, want)
			}
			last := l.trials[0]
			for _, trial := range l.trials {
				if trial.Status == result.Skipped {
					last = trial
				}
			}
			tries := len(tt.want) - 1
			if strings.ContainsAny(tt.want, "sS") {
				reason := fmt.Sprintf("given up after %d consecutive trials without success", tries)
				if last.Reason != reason {
					t.Errorf("reason %q, want %q", last.Reason, reason)
				}
				expect.Equal(t, "cut", []string{"test.one.x on " + tt.target + " was " + reason}, out.Caveats)
			} else if len(out.Caveats) > 0 {
				t.Errorf("cut: %q", out.Caveats)
			}
		})
	}
}

// after returns the number of blocks of each benchmark, separately for warm-up.
func after(l *harness) map[string][2]int {
	n := map[string][2]int{}
	for _, benchmark := range []string{"test.one.x", "test.two.x"} {
		var blocks [2]int
		for _, trial := range l.trials {
			switch {
			case trial.Benchmark != benchmark || trial.Status == result.Skipped:
			case trial.Warmup:
				blocks[0]++
			default:
				blocks[1]++
			}
		}
		n[benchmark] = blocks
	}
	return n
}

func TestBudget(t *testing.T) {
	// A trial takes 10 + 5 + 8 ms.
	for _, tt := range []struct {
		name    string
		budget  time.Duration
		warmup  int
		precise bool
		want    map[string][2]int // warm-up blocks, blocks
		cut     string
	}{
		{"enough", time.Second, 1, false, map[string][2]int{"test.one.x": {1, 3}, "test.two.x": {1, 3}}, ""},
		{"of a moment", 1, 0, false, map[string][2]int{"test.one.x": {}, "test.two.x": {}}, "the budget of 1ns ended after 0 of 3 blocks"},
		{"of a moment with warm-up", 1, 3, false, map[string][2]int{"test.one.x": {}, "test.two.x": {}}, "the budget of 1ns ended after 0 of 3 blocks"},
		{"in a trial", 30 * ms, 0, false, map[string][2]int{"test.one.x": {0, 1}, "test.two.x": {}}, "the budget of 30ms ended after 0 of 3 blocks"},
		{"in a round", 65 * ms, 0, false, map[string][2]int{"test.one.x": {0, 2}, "test.two.x": {0, 1}}, "the budget of 65ms ended after 1 of 3 blocks"},
		{"in warm-up", 120 * ms, 3, false, map[string][2]int{"test.one.x": {2, 1}, "test.two.x": {1, 1}}, "the budget of 120ms ended after 1 of 3 blocks"},
		{
			"in the search for precision", 200 * ms, 0, true,
			map[string][2]int{"test.one.x": {0, 5}, "test.two.x": {0, 4}},
			"the budget of 200ms ended after 4 blocks, before all results reached the requested precision",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			l.config.Stop.Min, l.config.Warmup, l.config.Budget = 3, tt.warmup, tt.budget
			if tt.precise {
				l.config.Stop.Max, l.config.Stop.Precision = 100, 0.01
			}
			l.work("test.one.x", live)
			l.work("test.two.x", live)
			out := l.ok()
			expect.Equal(t, "blocks of warm-up and measured", tt.want, after(l))
			if got := strings.Join(out.Caveats, "\n"); got != tt.cut {
				t.Errorf("cut %q, want %q", got, tt.cut)
			}
			for _, trial := range l.trials {
				if want := fmt.Sprintf("the budget of %v ended before its first measured trial", tt.budget); trial.Status == result.Skipped && trial.Reason != want {
					t.Errorf("%s was skipped because %q, want %q", trial.Benchmark, trial.Reason, want)
				}
			}
			if got, want := out.Counts[result.Skipped], strings.Count(fmt.Sprint(after(l)), "0]"); got != want {
				t.Errorf("%d benchmarks were skipped, and %d have no measured block", got, want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/bad@fail=create")
	l.config.Stop.Min, l.config.Warmup = 4, 1
	l.config.Targets = append(l.config.Targets, unavailable("oci/none"))
	l.work("test.one.x", live)
	l.ok()
	// A trial on a takes 23 ms and a failed creation 10 ms; bad is given up after three.
	a, bad, done := 0, 0, 0
	for i, trial := range l.started {
		got := l.at[i]
		total := 10
		left := time.Duration(0)
		switch {
		case done == 0:
		case a == 0:
			left = time.Duration(10-done) * 10 * ms
		case bad == 0:
			left = time.Duration(10-done) * 23 * ms
		case bad == 3 && got.Total == 5: // given up
			total, done = 5, a
			left = time.Duration(5-a) * 23 * ms
		default:
			left = time.Duration(5-a)*23*ms + time.Duration(5-bad)*10*ms
		}
		if want := (runner.Progress{Done: done, Total: total, Left: left, Least: left}); got != want {
			t.Errorf("before trial %d: %+v, want %+v", i+1, got, want)
		}
		if trial.Target == "fake/a" {
			a++
		} else {
			bad++
		}
		done = a + bad
	}
	if a != 5 || bad != 3 {
		t.Errorf("%d trials of the good target and %d of the bad one", a, bad)
	}
	if last := l.at[len(l.at)-1]; last.Total != 5 {
		t.Errorf("at the end %+v: the target that was given up is still counted", last)
	}
}

// A stop rule may end the run before its greatest number of blocks. The progress never shows "trial 7 of 6", nor more time than the budget leaves.
func TestProgressUnderStopRuleAndBudget(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop = stats.StopRule{Min: 3, Max: 6, Precision: 0.01} // too few blocks for an interval
	l.config.Budget = time.Hour
	l.work("test.one.x", live)
	l.ok()
	for i, p := range l.at {
		want := runner.Progress{Done: i, Total: 6, AtMost: i < 5}
		if i > 0 { // a trial takes 23 ms
			want.Left, want.Least = time.Duration(6-i)*23*ms, time.Duration(max(3, i+1)-i)*23*ms
		}
		if p != want {
			t.Errorf("before trial %d: %+v, want %+v", i+1, p, want)
		}
	}
	l = newHarness(t, "fake/a")
	l.config.Stop.Min, l.config.Budget = 100, 100*ms
	l.work("test.one.x", live)
	l.ok()
	if want := 100*ms - 23*ms; l.at[1].Left != want {
		t.Errorf("time left %v after the first trial, want the rest of the budget, %v", l.at[1].Left, want)
	}
}

// The number of blocks that a budget is enough for is known before the end of the first block, and it is the number that the run has at its end.
func TestProgressHasBlocksOfShortBudget(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/b")
	l.config.Warmup, l.config.Stop.Min, l.config.Budget = 1, 10, 480*ms
	var estimates []runner.Progress
	l.config.Estimated = func(p runner.Progress) { estimates = append(estimates, p) }
	l.work("test.one.x", live)
	l.work("test.one.y", live)
	l.config.Work[1].Blocks = 2
	out := l.ok()
	// (480 ms − 92 ms of the warm-up − 92 ms of the second benchmark) ÷ 46 ms
	if len(estimates) != 1 || estimates[0].Blocks != 6 || estimates[0].Goal != 10 {
		t.Errorf("the estimates are %+v, want 6 of 10 blocks", estimates)
	}
	if want := "after 6 of 10 blocks"; !strings.Contains(strings.Join(out.Caveats, "\n"), want) {
		t.Errorf("the caveats %q lack %q", out.Caveats, want)
	}
}
