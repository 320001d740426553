package experiment

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// countCalls makes an executor add the traces of the plan to each run. mounts is the number of mounts in a trace, which counts from 0 over all runs of a
// target.
func (s *script) countCalls(mounts func(target string, trace int) int64) {
	traces := map[string]int{}
	s.change = func(n int, r *Run) error {
		for _, t := range r.Targets {
			for range s.requests[n].Plan.Trace {
				r.Traces = append(r.Traces, result.Trace{
					Seq: len(r.Traces) + 1, Cell: result.Cell{Benchmark: r.Bench[0].Name, Params: r.Trials[0].Params, Target: t.Name}, Status: result.OK,
					Counts: []result.TraceCounts{{Step: "exec", Component: "runtime", Calls: map[string]int64{"mount": mounts(t.Name, traces[t.Name])}}},
				})
				traces[t.Name]++
			}
		}
		return nil
	}
}

// oneMore is a build B with a mount more in each trace.
func oneMore(target string, _ int) int64 {
	if target == sideB {
		return 34
	}
	return 33
}

// TestABCounts holds which runs follow the traces: none if no count differs, ten further traces after a suspicion, and times only if they decide something or
// if the user wants them.
func TestABCounts(t *testing.T) {
	equal := func(string, int) int64 { return 33 }
	gate, err := counts.ParseGate("--fail-on", "counts:mount>0")
	must.Do(t, err)
	gates := []counts.Gate{gate}
	for _, c := range []struct {
		name     string
		counting Counting
		mounts   func(string, int) int64
		runs     []int // the number of traces in each run before the calibration
		untimed  bool
		outcome  stats.Answer
	}{
		{"equal counts", Counting{First: true}, equal, []int{3}, true, ""},
		{"equal counts with a gate", Counting{First: true, Gates: gates}, equal, []int{3}, true, stats.NotWorse},
		{"equal counts, and a time in any case", Counting{First: true, Gates: gates, Wanted: true}, equal, []int{3}, false, stats.NotWorse},
		{"a gate alone", Counting{Gates: gates}, equal, []int{3}, false, stats.NotWorse},
		{"a mount more", Counting{First: true}, oneMore, []int{3, 10}, false, ""},
		{"a mount more, and a gate", Counting{First: true, Gates: gates}, oneMore, []int{3, 10}, true, stats.Worse},
		{"a mount more, a gate, and a time in any case", Counting{Gates: gates, Wanted: true}, oneMore, []int{3, 10}, false, stats.Worse},
		{"a mount that fresh traces refute", Counting{First: true, Gates: gates}, func(target string, trace int) int64 {
			if target == sideB && trace < countTraces {
				return 34
			}
			return 33
		}, []int{3, 10}, true, stats.Inconclusive},
		{"no counts", Counting{}, equal, nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{value: slowB(1.2, 0)}
			s.countCalls(c.mounts)
			series, _, lines := compareBuilds(t, s, time.Minute)
			series.Counting = c.counting
			must.Do(t, series.Run(t.Context()))
			var runs []int
			for _, r := range s.requests {
				if r.Plan.Trace > 0 {
					runs = append(runs, r.Plan.Trace)
				}
			}
			var outcome stats.Answer
			if series.Counts != nil {
				outcome = series.Counts.Outcome()
			}
			if !slices.Equal(runs, c.runs) || series.Untimed != c.untimed || outcome != c.outcome {
				t.Errorf("runs with %v traces, without times %t, outcome %q; want %v, %t, %q: %q", runs, series.Untimed, outcome, c.runs, c.untimed, c.outcome, *lines)
			}
			if c.untimed == (series.Comparison != nil) || c.untimed && len(s.requests) != len(runs) {
				t.Errorf("%d runs, the comparison of times is %v", len(s.requests), series.Comparison)
			}
			if calibration := s.requests[min(len(runs), len(s.requests)-1)].Plan; !c.untimed && (calibration.Name != "ab calibration" || calibration.Trace != 0) {
				t.Errorf("the run after the counts is %s with %d traces", calibration.Name, calibration.Trace)
			}
		})
	}
}

// TestABMeasuresDifferentBenchmarks holds that time is measured for the benchmark whose counts differ, and not for the other one.
func TestABMeasuresDifferentBenchmarks(t *testing.T) {
	p := parsePlan(t, "benchmarks: [{name: operations.container}]")
	c, err := NewAB(p, [2]Build{{Target: target.Target{Engine: "fake", Runtime: "old"}}, {Target: target.Target{Engine: "fake", Runtime: "new"}}}, nil, 0.03)
	must.Do(t, err)
	if len(c.keys) < 2 {
		t.Fatalf("the plan has the benchmarks %v, want several", c.keys)
	}
	s := &script{value: slowB(1.2, 0), change: func(_ int, r *Run) error {
		for _, t := range r.Targets {
			for range counts.ShownBy {
				for i, key := range c.keys {
					mounts := int64(33)
					if i == 1 {
						mounts = oneMore(t.Name, 0)
					}
					r.Traces = append(r.Traces, result.Trace{
						Cell: result.Cell{Benchmark: key.Name, Params: key.Params, Target: t.Name}, Status: result.OK,
						Counts: []result.TraceCounts{{Step: "exec", Component: "runtime", Calls: map[string]int64{"mount": mounts}}},
					})
				}
			}
		}
		return nil
	}}
	c.Executor, c.Budget, c.Counting.First = s, time.Minute, true
	c.Publish, c.Line = func(report.Report) error { return nil }, func(string) {}
	must.Do(t, c.Run(t.Context()))
	for _, v := range c.Design.Values {
		if v.Key != c.keys[1] {
			t.Errorf("the comparison has a time of %s, want only %s", v.Title(), c.keys[1].Title())
		}
	}
	if items := s.requests[len(s.requests)-1].Plan.Benchmarks; len(items) != 1 || items[0].Name != c.keys[1].Name || len(c.Design.Values) == 0 {
		t.Errorf("the last run has the benchmarks %+v", items)
	}
}

// TestABWithoutTraces holds that a machine without a tracer is an error with the reason, and no pass.
func TestABWithoutTraces(t *testing.T) {
	s := &script{change: func(_ int, r *Run) error {
		r.Caveats = []string{"other", execution.NotTraced + "the kernel has no BTF: use another one"}
		return nil
	}}
	c, _, _ := compareBuilds(t, s, time.Minute)
	c.Counting.First = true
	err := c.Run(t.Context())
	if is := (*UnavailableError)(nil); !errors.As(err, &is) || !strings.Contains(err.Error(), "count the calls of operations.container.exec repeats=5 on fake/old: the kernel has no BTF: use another one; compare times alone without --first counts") {
		t.Errorf("the error is %v", err)
	}
}
