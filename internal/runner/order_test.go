package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// orders returns the targets of each block of a benchmark, warm-up first.
func orders(trials []result.Trial, benchmark string) (blocks [][]string) {
	type block struct {
		n      int
		warmup bool
	}
	var last *block
	for _, t := range trials {
		if t.Benchmark != benchmark {
			continue
		}
		if current := (block{t.Block, t.Warmup}); last == nil || *last != current {
			blocks, last = append(blocks, nil), &current
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], t.Target)
	}
	return blocks
}

// Invariant seed.
func TestEachBlockHasEachTargetOnce(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/b", "fake/c")
	l.config.Stop.Min, l.config.Warmup = 4, 2
	l.work("test.one.x", live)
	l.work("test.two.x", live)
	l.ok()
	if got, want := len(l.trials), 2*(4+2)*3; got != want {
		t.Fatalf("%d trials, want %d", got, want)
	}
	for i, trial := range l.trials {
		// A round is a block of each benchmark, and the first two are warm-up.
		round, position := i/6, i%6
		want := result.Trial{Seq: i + 1, Block: round - 2, Warmup: round < 2, Status: result.OK}
		if want.Warmup {
			want.Block = round
		}
		want.Benchmark = []string{"test.one.x", "test.two.x"}[position/3]
		if trial.Seq != want.Seq || trial.Block != want.Block || trial.Warmup != want.Warmup ||
			trial.Benchmark != want.Benchmark || trial.Status != want.Status {
			t.Errorf("trial %d is %v, want %v", i, spell(l.trials[i:i+1]), spell([]result.Trial{want}))
		}
	}
	for _, benchmark := range []string{"test.one.x", "test.two.x"} {
		for n, block := range orders(l.trials, benchmark) {
			if slices.Sort(block); !slices.Equal(block, []string{"fake/a", "fake/b", "fake/c"}) {
				t.Errorf("block %d of %s has the targets %v", n, benchmark, block)
			}
		}
	}
	expect.Equal(t, "recorded (-) and observed (+)", spell(l.trials), spell(l.ended))
}

// A seed always gives the same order: otherwise old runs could not be resumed.
//
// Invariant seed: The order comes from the recorded seed, and a resumed run is the same run.
func TestSeedFixesTheOrder(t *testing.T) {
	order := func(seed uint64) [][]string {
		l := newHarness(t, "fake/a", "fake/b", "fake/c")
		l.config.Seed, l.config.Stop.Min, l.config.Warmup = seed, 4, 1
		l.work("test.one.x", exit)
		l.ok()
		return orders(l.trials, "test.one.x")
	}
	want := [][]string{
		{"fake/b", "fake/c", "fake/a"},
		{"fake/b", "fake/c", "fake/a"},
		{"fake/c", "fake/b", "fake/a"},
		{"fake/c", "fake/a", "fake/b"},
		{"fake/b", "fake/c", "fake/a"},
	}
	expect.Equal(t, "order of seed 1", want, order(1))
	if cmp.Equal(order(1), order(2)) {
		t.Error("seeds 1 and 2 give the same order")
	}
}

// All orders of three targets are about equally frequent.
//
// Invariant seed.
func TestOrdersAreBalanced(t *testing.T) {
	const blocks = 600
	l := newHarness(t, "fake/a", "fake/b", "fake/c")
	l.config.Stop.Min = blocks
	l.work("test.one.x", func(context.Context, bench.Trial) error { return nil })
	l.ok()
	count := map[string]int{}
	for _, block := range orders(l.trials, "test.one.x") {
		count[fmt.Sprint(block)]++
	}
	chi2 := 0.0
	for _, n := range count {
		chi2 += float64((n-blocks/6)*(n-blocks/6)) / (blocks / 6)
	}
	// 20.5 is the 99.9th percentile of χ² with 5 degrees of freedom; the seed is fixed.
	if len(count) != 6 || chi2 > 20.5 {
		t.Errorf("χ² = %.1f of the orders %v", chi2, count)
	}
}

// A run that is interrupted after any number of trials and resumed has the same trials as an uninterrupted run, with
// failures, skips, a target that is given up and a stop rule.
//
// Invariant seed.
func TestResumedRunEqualsUninterruptedRun(t *testing.T) {
	build := func() *harness {
		l := newHarness(t, "fake/a", "fake/bad@fail=start", "fake/less@no=exec")
		l.config.Warmup, l.config.Stop = 1, stats.StopRule{Min: 5, Max: 18, Precision: 0.02}
		l.work("test.one.x", live)                                              // precise at the second check, after 10 blocks
		l.work("test.two.x", values(func(n int) float64 { return float64(n) })) // never precise
		l.config.Work[1].Benchmark.Needs = bench.Always(engine.CanExec)
		return l
	}
	reference := build()
	out := reference.ok()
	// Skipped are fake/less in test.two.x, and fake/bad in both benchmarks after it is given up.
	if len(out.Caveats) != 2 || out.Counts[result.Skipped] != 3 || out.Counts[result.Failed] != 6 {
		t.Fatalf("the run lacks what this test is about: %+v", out)
	}
	if one, two := len(orders(reference.trials, "test.one.x")), len(orders(reference.trials, "test.two.x")); one != 1+10 || two != 1+18+1 {
		// The skipped trial of fake/less comes first and counts as a block.
		t.Fatalf("%d and %d blocks, warm-up included, want 11 and 20", one, two)
	}
	for n := range len(reference.trials) {
		first := build()
		first.interruptAfter(n + 1)
		second := first.again()
		outcome := second.ok()
		if diff := cmp.Diff(spell(reference.trials), spell(slices.Concat(first.trials, second.trials))); diff != "" {
			t.Fatalf("interrupted after trial %d: whole (-) and resumed (+) run:\n%s", n+1, diff)
		}
		expect.Equal(t, fmt.Sprintf("interrupted after trial %d: counts of the whole (-) and the resumed (+) run", n+1), out.Counts, outcome.Counts)
	}
}

// Invariant trials-recorded.
func TestRecordErrorEndsTheRun(t *testing.T) {
	for _, fatal := range []int{1, 2, 4} {
		l := newHarness(t, "fake/a", "fake/b")
		l.config.Stop.Min = 3
		l.config.Targets = append(l.config.Targets, unavailable("oci/none"))
		record := l.config.Record
		l.config.Record = func(trial result.Trial) error {
			if trial.Seq == fatal {
				return errBroken
			}
			return record(trial)
		}
		l.work("test.one.x", live)
		out, err := l.run(t.Context())
		if !errors.Is(err, errBroken) {
			t.Errorf("record of trial %d fails: Run() = %v, want the error of Record", fatal, err)
		}
		if len(l.trials) != fatal-1 || len(l.started) >= fatal {
			t.Errorf("record of trial %d fails: %d trials recorded and %d begun", fatal, len(l.trials), len(l.started))
		}
		if out.Interrupted {
			t.Errorf("record of trial %d fails: the run is marked as interrupted", fatal)
		}
	}
}
