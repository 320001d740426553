package experiment

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const sideA, sideB = "fake/old", "fake/new"

// compareBuilds returns a comparison of two fake builds, the reports of its runs and its lines.
func compareBuilds(t *testing.T, s *script, budget time.Duration) (c *AB, reports, lines *[]string) {
	t.Helper()
	p := parsePlan(t, "seed: 7\nbenchmarks: [{name: operations.container.exec}]")
	c, err := NewAB(p, [2]Build{{Target: target.Target{Engine: "fake", Runtime: "old"}}, {Target: target.Target{Engine: "fake", Runtime: "new"}}}, nil, 0.03)
	must.Do(t, err)
	reports, lines = new([]string), new([]string)
	c.Executor, c.Budget = s, budget
	c.Publish = func(r report.Report) error { *reports = append(*reports, r.Runs[0].ID); return nil }
	c.Line = func(line string) { *lines = append(*lines, line) }
	return c, reports, lines
}

// slowB makes B take ratio times as long as A, with noise of 1 % within a run. wander is the standard deviation of the ratio's logarithm between
// runs.
func slowB(ratio, wander float64) func(int, int, string) float64 {
	random := rand.New(rand.NewPCG(1, 1))
	return func(n, _ int, name string) float64 {
		value := 0.01 * random.NormFloat64()
		if name == sideB {
			value += math.Log(ratio) + wander*float64(1-n%2*2)
		}
		return math.Exp(value)
	}
}

// The runs end with the answer. Each of them opens the other build first, and has a seed of its own.
func TestABEndsWithTheAnswer(t *testing.T) {
	s := &script{value: slowB(1.2, 0)}
	c, reports, lines := compareBuilds(t, s, time.Minute)
	must.Do(t, c.Run(t.Context()))
	if c.Comparison.Answer() != stats.Worse || c.End != Complete || len(c.Comparison.Done) != ab.LeastRuns {
		t.Errorf("the answer is %s after %d runs, the end %d", c.Comparison.Answer(), len(c.Comparison.Done), c.End)
	}
	if want := []string{"run-0", "run-1", "run-2", "run-3", "run-4"}; !slices.Equal(*reports, want) || c.Pilot.ID != want[0] || c.Pilot.Name != "ab calibration" {
		t.Errorf("the reports are %v and the calibration %s (%s), want %v", *reports, c.Pilot.ID, c.Pilot.Name, want)
	}
	for n, r := range s.requests {
		if first := r.Plan.Targets[0].String(); first != []string{sideA, sideB}[n%2] || *r.Plan.Seed != uint64(7+n) || r.Wait != (n > 0) {
			t.Errorf("run %d: %s is the first build, the seed is %d, wait %t", n, first, *r.Plan.Seed, r.Wait)
		}
	}
	if want := fmt.Sprintf("up to 8 runs of %d blocks, each about ", c.Design.Blocks); len(*lines) != 5 || !strings.HasPrefix((*lines)[0], want) {
		t.Errorf("the lines are %q, want %q and one for each run", *lines, want)
	}
}

// The design of the advice decides. The ratio varies from run to run by more than the margin and little within a run, so that a larger budget
// alone gives longer runs and no answer.
func TestABAdvice(t *testing.T) {
	s := &script{value: slowB(1, 0.1)}
	c, _, _ := compareBuilds(t, s, 15*time.Second)
	must.Do(t, c.Run(t.Context()))
	advice := c.Comparison.Decision()
	if c.Comparison.Answer() != stats.Inconclusive || advice.Runs <= abManyRuns {
		t.Fatalf("the answer is %s and the advice %+v, want more runs than a budget alone gives", c.Comparison.Answer(), advice)
	}
	s = &script{value: slowB(1, 0.1)}
	c, _, _ = compareBuilds(t, s, quantity.TimeWithReserve(advice.Time))
	c.Runs, c.Blocks = advice.Runs, advice.Blocks
	must.Do(t, c.Run(t.Context()))
	if c.Comparison.Answer() != stats.NotWorse {
		t.Errorf("the answer with %+v is %s after %d runs, the end %d", advice, c.Comparison.Answer(), len(c.Comparison.Done), c.End)
	}
}

// A run that was interrupted, that failed, or that the end of the budget cut off has no part in the answer.
func TestABEndsBeforeTheAnswer(t *testing.T) {
	failure := errors.New("the engine is gone")
	for _, c := range []struct {
		name    string
		budget  time.Duration
		change  func(n int, r *Run) error
		end     End
		err     error
		runs    int // those that count
		reports int
	}{
		{"an interrupt", time.Minute, inRun(3, interrupt), Interrupted, nil, 2, 4},
		{"an interrupt of the calibration", time.Minute, inRun(0, interrupt), Interrupted, nil, -1, 1},
		{"an error without a record", time.Minute, func(n int, r *Run) error {
			if n != 3 {
				return nil
			}
			r.Recorded = false
			return failure
		}, Complete, failure, 2, 3},
		{"an error with a record", time.Minute, func(n int, _ *Run) error {
			if n != 3 {
				return nil
			}
			return failure
		}, Complete, failure, 2, 4},
		{"a slow run", 40 * time.Second, inRun(2, func(r *Run) { r.Took = time.Minute }), OutOfBudget, nil, 2, 3},
		{
			"the end of the budget before the first block", 40 * time.Second,
			inRun(2, func(r *Run) { r.Took, r.Trials = time.Minute, nil }), OutOfBudget, nil, 1, 3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, reports, _ := compareBuilds(t, &script{value: slowB(1, 0.1), change: c.change}, c.budget)
			err := b.Run(t.Context())
			runs := -1
			if b.Comparison != nil {
				runs = len(b.Comparison.Done)
			}
			if b.End != c.end || !errors.Is(err, c.err) || runs != c.runs || len(*reports) != c.reports {
				t.Errorf("the end is %d, %v, %d runs count and %d have a report; want %d, %v, %d, %d", b.End, err, runs, len(*reports), c.end, c.err, c.runs, c.reports)
			}
		})
	}
}

// The calibration finds what prevents an answer, before the runs.
func TestABCalibration(t *testing.T) {
	s := &script{change: inRun(0, func(r *Run) { r.loseAll(sideB) })}
	c, _, _ := compareBuilds(t, s, time.Minute)
	must.Do(t, c.Run(t.Context()))
	if !c.NoRatio || c.Comparison != nil || len(s.requests) != 1 {
		t.Errorf("a build that fails: no ratio %t after %d runs", c.NoRatio, len(s.requests))
	}

	s = &script{change: inRun(0, func(r *Run) { r.Targets[1].Unavailable = "not installed" })}
	c, _, _ = compareBuilds(t, s, time.Minute)
	if _, ok := errors.AsType[*UnavailableError](c.Run(t.Context())); !ok || len(s.requests) != 1 {
		t.Errorf("a build that is missing: %d runs, without an error", len(s.requests))
	}

	s = &script{deadline: true}
	c, _, _ = compareBuilds(t, s, scriptSetUp)
	refused(t, c.Run(t.Context()), "--budget 1s ended before the first block of operations.container.exec repeats=5; give more, such as --budget 20s")

	c, _, _ = compareBuilds(t, &script{}, 4*time.Second)
	refused(t, c.Run(t.Context()), "--budget 4s: after the calibration 2.774s are left, and 4 runs of 1 block take 4.16s (set-up 1s, block 20ms); give at least --budget 7s")
}
