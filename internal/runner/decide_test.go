package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/decision"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// created is a benchmark whose value is the time of create, as the options of the fake target set it.
func created(ctx context.Context, t bench.Trial) error {
	_, span, err := t.Create(ctx, t.Spec(probe.Exit(0)...))
	if err != nil {
		return err
	}
	t.Record("Value", span.Seconds())
	return nil
}

// decidingHarness is a run with the rule, on a baseline, a target that differs, and an equal target.
func decidingHarness(t *testing.T, targets ...string) (l *harness, stops *[]result.Stop) {
	t.Helper()
	l = newHarness(t, targets...)
	stops = new([]result.Stop)
	l.config.Warmup = 1
	l.config.Decide = &decision.Rule{Looks: stats.Looks(8, 40), Comparisons: len(targets) - 1, Baseline: targets[0]}
	l.config.Stopped = func(s result.Stop) error {
		*stops = append(*stops, s)
		return nil
	}
	return l, stops
}

const (
	baseFake  = "fake/base@create=20ms,jitter=0.05"
	slowFake  = "fake/slow@create=40ms,jitter=0.05"
	equalFake = "fake/equal@create=20ms,jitter=0.05"
)

// measuredBlocks are the numbers of measured blocks by target.
func measuredBlocks(l *harness, benchmark string) map[string]int {
	blocks := map[string]int{}
	for _, t := range l.trials {
		if t.Benchmark == benchmark && !t.Warmup && t.Status != result.Skipped {
			blocks[t.Target]++
		}
	}
	return blocks
}

func TestDecidedCellEnds(t *testing.T) {
	l, stops := decidingHarness(t, baseFake, slowFake, equalFake)
	l.work("test.one.x", created)
	if out := l.ok(); len(out.Caveats) > 0 {
		t.Errorf("caveats %q", out.Caveats)
	}
	if len(*stops) != 1 || (*stops)[0].Target != slowFake || (*stops)[0].Reason != result.Decided {
		t.Fatalf("stopped: %v, want only %s", *stops, slowFake)
	}
	blocks := (*stops)[0].Blocks
	if blocks < 10 || blocks > 25 || !slices.Contains(stats.Looks(8, 40), blocks) {
		t.Errorf("%s ended after %d blocks", slowFake, blocks)
	}
	expect.Equal(t, "blocks", map[string]int{baseFake: 40, slowFake: blocks, equalFake: 40}, measuredBlocks(l, "test.one.x"))
	if last := l.at[len(l.at)-1]; last.Total != 3+40+blocks+40 || last.Done != last.Total-1 {
		t.Errorf("progress at the last trial: %+v", last)
	}
	if !l.at[0].AtMost {
		t.Error("the first estimate is not marked as the greatest")
	}
	// The times of trials vary, so the pace is not exact, and the first blocks have none.
	for i, p := range l.at[10:] {
		if left := l.left(10 + i); p.Least > left*11/10 || p.Left < left*9/10 {
			t.Errorf("before trial %d: the run takes %v more, and the estimate is from %v to %v", 11+i, left, p.Least, p.Left)
		}
	}
}

// The order of the targets that are left is the same as with all targets.
func TestOrderOfOpenCellsStays(t *testing.T) {
	reference := newHarness(t, baseFake, slowFake, equalFake)
	reference.config.Warmup, reference.config.Stop = 1, stats.StopRule{Min: 40, Max: 40}
	reference.work("test.one.x", created)
	reference.ok()
	l, stops := decidingHarness(t, baseFake, slowFake, equalFake)
	l.work("test.one.x", created)
	l.ok()
	place := func(t result.Trial) string { return t.Target }
	want := slices.DeleteFunc(slices.Clone(reference.trials), func(t result.Trial) bool {
		return t.Target == slowFake && !t.Warmup && t.Block >= (*stops)[0].Blocks
	})
	if len(want) != len(l.trials) {
		t.Fatalf("%d trials, want %d", len(l.trials), len(want))
	}
	for i := range want {
		if place(want[i]) != place(l.trials[i]) {
			t.Fatalf("trial %d is on %s, want %s", i, l.trials[i].Target, want[i].Target)
		}
	}
}

func TestBenchmarkEndsWithItsCells(t *testing.T) {
	l, stops := decidingHarness(t, baseFake, slowFake)
	l.work("test.one.x", created)
	l.work("test.two.x", created)
	l.config.Work[1].Blocks = 7 // of its own: no looks
	l.ok()
	if len(*stops) != 2 || (*stops)[0].Target != slowFake || (*stops)[1].Target != baseFake || (*stops)[1].Reason != result.AllStopped {
		t.Fatalf("stopped: %v", *stops)
	}
	blocks := (*stops)[0].Blocks
	expect.Equal(t, "blocks", map[string]int{baseFake: blocks, slowFake: blocks}, measuredBlocks(l, "test.one.x"))
	expect.Equal(t, "blocks of a benchmark with a number of its own", map[string]int{baseFake: 7, slowFake: 7}, measuredBlocks(l, "test.two.x"))
}

func TestCellsEndWithoutADifference(t *testing.T) {
	for name, tt := range map[string]struct {
		targets []string
		change  func(*harness)
		want    result.StopReason
	}{
		"a precise ratio": {[]string{baseFake, equalFake}, func(l *harness) { l.config.Decide.Precision = 0.1 }, result.Precise},
		"equal values":    {[]string{baseFake, equalFake}, func(l *harness) { l.config.Work[0].Benchmark.Run = live }, result.Precise},
		"no value":        {[]string{baseFake, equalFake}, func(l *harness) { l.config.Work[0].Benchmark.Run = exit }, result.Incomparable},
		"no baseline: the first target with values stands for it": {[]string{"fake/base@fail=create", slowFake, equalFake}, func(*harness) {}, result.Decided},
	} {
		t.Run(name, func(t *testing.T) {
			l, stops := decidingHarness(t, tt.targets...)
			l.work("test.one.x", created)
			tt.change(l)
			l.ok()
			if len(*stops) != 2 || (*stops)[0].Reason != tt.want || (*stops)[0].Blocks >= 40 {
				t.Errorf("stopped: %v, want %s first", *stops, tt.want)
			}
		})
	}
}

// A deciding metric that is open keeps the cell, and a metric without a phrase does not if another one has a phrase.
func TestDecidingMetrics(t *testing.T) {
	for name, tt := range map[string]struct {
		phrase string
		ends   bool
	}{"all metrics decide": {"", false}, "the metric with a phrase decides": {"creates in", true}} {
		l, stops := decidingHarness(t, baseFake, slowFake)
		n := 0
		l.work("test.one.x", func(ctx context.Context, trial bench.Trial) error {
			n++
			trial.Record("Equal", float64(1+n%5))
			return created(ctx, trial)
		})
		l.config.Work[0].Benchmark.Metrics = []result.Metric{{Name: "Value", Better: result.Lower, Phrase: tt.phrase}, {Name: "Equal", Better: result.Lower}}
		l.ok()
		if got := len(*stops) > 0; got != tt.ends {
			t.Errorf("%s: stopped %v", name, *stops)
		}
	}
}

// Invariant resumed-looks: A resumed run ends the same cells at the same looks.
func TestResumedRunDecidesAlike(t *testing.T) {
	build := func() (*harness, *[]result.Stop) {
		l, stops := decidingHarness(t, baseFake, slowFake, equalFake)
		l.config.Decide.Looks = stats.Looks(8, 24)
		l.work("test.one.x", created)
		return l, stops
	}
	reference, want := build()
	reference.ok()
	if len(*want) == 0 {
		t.Fatal("no cell ended early")
	}
	for _, n := range []int{1, 20, 3 + 3*(*want)[0].Blocks - 1, 3 + 3*(*want)[0].Blocks, len(reference.trials) - 1} {
		first, _ := build()
		first.interruptAfter(n)
		// The clock of the fake targets begins again, so the values of the second part are those of the whole run.
		second := first.again()
		var stops []result.Stop
		second.config.Stopped = func(s result.Stop) error {
			stops = append(stops, s)
			return nil
		}
		values := map[int]float64{}
		for _, trial := range reference.trials {
			values[trial.Seq] = trial.Values("Value")[0]
		}
		second.config.Work[0].Benchmark.Run = func(_ context.Context, t bench.Trial) error {
			seq := second.started[len(second.started)-1].Seq
			t.Record("Value", values[seq])
			return nil
		}
		second.ok()
		expect.Equal(t, fmt.Sprintf("interrupted after trial %d: cells of the whole (-) and the resumed (+) run", n), *want, stops)
		expect.Equal(t, fmt.Sprintf("interrupted after trial %d: whole (-) and resumed (+) run", n), spell(reference.trials), spell(slices.Concat(first.trials, second.trials)))
	}
}

func TestBudgetBeforeTheFirstLook(t *testing.T) {
	l, stops := decidingHarness(t, baseFake, slowFake)
	l.work("test.one.x", created)
	l.config.Budget = 300 * ms
	out := l.ok()
	if len(*stops) > 0 || len(out.Caveats) != 1 || out.Caveats[0] != "the budget of 300ms ended after 3 blocks, before all comparisons were decided" {
		t.Errorf("stopped %v, caveats %q", *stops, out.Caveats)
	}
}

func TestErrorOfStoppedEndsTheRun(t *testing.T) {
	l, _ := decidingHarness(t, baseFake, slowFake)
	l.work("test.one.x", created)
	l.config.Stopped = func(result.Stop) error { return errBroken }
	if _, err := l.run(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Run() = %v, want %v", err, errBroken)
	}
}

func TestEstimate(t *testing.T) {
	const trial = 28 * ms // 20 ms for create and 8 ms for delete
	cells := map[result.Cell]time.Duration{
		{Benchmark: "test.one.x", Target: "fake/a@create=20ms"}: time.Second, {Benchmark: "test.one.x", Target: "fake/b@create=20ms"}: 2 * time.Second,
	}
	fixed := stats.StopRule{Min: 4, Max: 4}
	precise := stats.StopRule{Min: 4, Max: 12, Precision: 0.02}
	for name, tt := range map[string]struct {
		stop        stats.StopRule
		expected    map[result.Cell]time.Duration
		budget      time.Duration
		least, most time.Duration
		before      int // trials
	}{
		"after the first block":                   {fixed, nil, 0, 2 * 4 * trial, 2 * 4 * trial, 2},
		"from earlier runs":                       {fixed, cells, 0, 5 * 3 * time.Second, 5 * 3 * time.Second, 0},
		"of one cell only":                        {fixed, map[result.Cell]time.Duration{{Benchmark: "test.one.x", Target: "fake/a@create=20ms"}: time.Second}, 0, 2 * 4 * trial, 2 * 4 * trial, 2},
		"with a precision":                        {precise, cells, 0, 5 * 3 * time.Second, 13 * 3 * time.Second, 0},
		"with a precision, after the first block": {precise, nil, 0, 2 * 4 * trial, 2 * 12 * trial, 2},
		"with a precision and a budget":           {precise, cells, 20 * time.Second, 5 * 3 * time.Second, 20 * time.Second, 0},
	} {
		l := newHarness(t, "fake/a@create=20ms", "fake/b@create=20ms")
		l.config.Warmup, l.config.Stop, l.config.Expected, l.config.Budget = 1, tt.stop, tt.expected, tt.budget
		l.work("test.one.x", created)
		calls := 0
		l.config.Estimated = func(p runner.Progress) {
			calls++
			if p.Least != tt.least || p.Left != tt.most || p.AtMost != (tt.stop.Precision > 0) || len(l.trials) != tt.before {
				t.Errorf("%s: %+v after %d trials, want from %v to %v after %d", name, p, len(l.trials), tt.least, tt.most, tt.before)
			}
		}
		l.ok()
		if calls != 1 {
			t.Errorf("%s: %d estimates", name, calls)
		}
	}
}
