package sides_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// tracedSide is a run with ten traces of oci/runc that mount so many times. A trace of native has no counts.
func tracedSide(id string, mounts int64) sides.Side {
	run := reporttest.Small()
	run.ID = id
	for n := range counts.ShownBy {
		run.Traces = append(run.Traces, result.Trace{
			Seq: n + 1, Cell: result.Cell{Benchmark: run.Bench[0].Name, Params: run.Trials[0].Params, Target: "oci/runc"}, Status: result.OK, Started: run.Started.Add(time.Hour),
			Counts: []result.TraceCounts{{Step: "create", Component: "runtime", Calls: map[string]int64{"mount": mounts, "futex": int64(250 + n)}}},
		})
	}
	failure := run.Traces[0]
	failure.Seq, failure.Target, failure.Status, failure.Reason, failure.Counts = len(run.Traces)+1, "native", result.Failed, "events are missing", nil
	run.Traces = append(run.Traces, failure)
	return sides.Side{Name: id, Runs: []result.Run{run}}
}

// TestCounts holds that a gate by counts fails for a mount more, is inconclusive for a target without counts, and refuses a side without traces.
func TestCounts(t *testing.T) {
	gate, err := counts.ParseGate("--fail-on", "counts:mount>0")
	must.Do(t, err)
	o := sides.Options{CountGates: []counts.Gate{gate}}
	c, err := sides.New(tracedSide("a", 33), tracedSide("b", 34), o)
	must.Do(t, err)
	if k := c.CountChecks(); len(k) != 2 || k[0].Target != "oci/runc" || k[0].Answer != stats.Worse || k[1].Target != "native" || k[1].Answer != stats.Inconclusive ||
		k[1].Reason != "side A has no trace with counts: events are missing" || c.Outcome() != stats.Worse {
		t.Errorf("the outcome is %q: %+v", c.Outcome(), k)
	}
	if want := "Regression: of 2 gated values 1 worse than the margin, 1 undecided, 0 not worse."; c.GateSummary() != want {
		t.Errorf("the summary is %q, want %q", c.GateSummary(), want)
	}
	if c, err = sides.New(tracedSide("a", 33), tracedSide("b", 33), o); err != nil || c.CountChecks()[0].Answer != stats.NotWorse || c.Outcome() != stats.Inconclusive {
		t.Errorf("equal sides are %q: %v", c.Outcome(), err)
	}
	untraced := tracedSide("untraced", 33)
	untraced.Runs[0].Traces = nil
	_, err = sides.New(tracedSide("a", 33), untraced, o)
	if is := (*sides.GateError)(nil); !errors.As(err, &is) || !strings.Contains(err.Error(), "--fail-on: side B, untraced has no traces, so counts:mount>0 has no counts to compare; record its runs with touchstone benchmark --trace 10") {
		t.Errorf("the error is %v", err)
	}
	untraced.Name, untraced.Runs[0].ID = "other", "other"
	if c, err = sides.New(tracedSide("a", 33), untraced, sides.Options{}); err != nil || c.Counts != nil {
		t.Errorf("without a gate the counts are %+v: %v", c.Counts, err)
	}
	learned := &counts.Learned{Traces: 20, Benchmarks: []counts.LearnedBenchmark{{Key: analysis.Key{Name: c.Cells[0].Benchmark, Params: c.Cells[0].Params}, Varying: []counts.VaryingCount{
		{Place: counts.Place{Step: "create", Component: "runtime", Name: "mount"}}, {Place: counts.Place{Step: counts.AllSteps, Component: "runtime", Name: "mount"}},
	}}}}
	o.Learned = func(target string) *counts.Learned { return map[string]*counts.Learned{"oci/runc": learned}[target] }
	if c, err = sides.New(tracedSide("a", 33), tracedSide("b", 34), o); err != nil || c.CountChecks()[0].Answer != stats.Inconclusive {
		t.Errorf("a count that a selfcheck has seen to vary is %+v: %v", c.CountChecks(), err)
	}
}
