package report_test

import (
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

// Invariant worst-case.
func TestWorstCase(t *testing.T) {
	run := reporttest.Latencies()
	b := benchmark(t, model(run), reporttest.LatencyBenchmark)
	bounded := cell(t, b, "Exec", reporttest.BoundedTarget).Worst
	if bounded.Refusal != nil || len(bounded.Bounds) != 2 || bounded.N != 30_000 {
		t.Fatalf("the worst case of %s is %+v: %v", reporttest.BoundedTarget, bounded, bounded.Refusal)
	}
	for i, p := range []float64{1e-5, 1e-6} {
		truth := 0.01 - 0.001*math.Log(p)
		if got := bounded.Bounds[i]; math.Abs(got.P/p-1) > 1e-9 || got.CI.Lo > truth || got.CI.Hi < truth {
			t.Errorf("bound %d is %+v, want %v with probability %v", i, got, truth, p)
		}
	}
	maximum := 0.0
	for _, trial := range run.Trials {
		if trial.Target == reporttest.BoundedTarget {
			for _, v := range trial.Distributions[0].Tail.Values {
				maximum = max(maximum, v)
			}
		}
	}
	if bounded.Max != maximum {
		t.Errorf("the largest sample is %v, want %v", bounded.Max, maximum)
	}
	for target, want := range map[string]tail.Test{reporttest.DriftingTarget: tail.Drift, reporttest.ShortTarget: tail.Exceedances} {
		w := cell(t, b, "Exec", target).Worst
		if w.Refusal == nil || w.Refusal.Test != want || w.Bounds != nil || w.Max == 0 {
			t.Errorf("the worst case of %s is %+v, want a refusal by %s", target, w, want)
		}
		if text := finding.Largest(w, result.Seconds) + finding.Bounds(w, result.Seconds); !strings.Contains(text, "the largest of ") || !strings.Contains(text, string(want)) {
			t.Errorf("the text of %s is %q", target, text)
		}
	}
	if text := finding.Bounds(bounded, result.Seconds); !strings.Contains(text, "one in 10⁵ above ") || !strings.Contains(text, "one in 10⁶ above ") {
		t.Errorf("the text is %q", text)
	}
}

// A trial that exceeded its limit may have had the slowest samples, so the others give no bound.
//
// Invariant worst-case.
func TestLostTrialsHaveNoBound(t *testing.T) {
	run := reporttest.Latencies()
	for i := range run.Trials {
		if trial := &run.Trials[i]; trial.Target == reporttest.BoundedTarget && trial.Block == 2 {
			trial.Status, trial.Reason, trial.Samples, trial.Distributions = result.Timeout, "exec took longer than its limit of 1m0s", nil, nil
		}
	}
	w := cell(t, benchmark(t, model(run), reporttest.LatencyBenchmark), "Exec", reporttest.BoundedTarget).Worst
	if w == nil || w.Refusal == nil || w.Refusal.Test != analysis.LostTrials || w.N != 25_000 || w.Max == 0 || w.Bounds != nil {
		t.Fatalf("the worst case is %+v", w)
	}
	if text := finding.Bounds(w, result.Seconds); !strings.Contains(text, "1 of 6 blocks is lost (1 timed out)") {
		t.Errorf("the text is %q", text)
	}
}

// Many samples of a time have a worst case without a tail, and few samples, amounts and trends have none.
func TestWorstCaseOfSamples(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *result.Metric)
		n      int
		want   bool
	}{
		"many samples of a time": {func(*result.Metric) {}, 400, true},
		"few samples":            {func(*result.Metric) {}, 300, false},
		"an amount":              {func(m *result.Metric) { m.Unit = result.Bytes }, 400, false},
		"CPU time":               {func(m *result.Metric) { m.Consumed = true }, 400, false},
		"a trend":                {func(m *result.Metric) { m.Trend = "running container" }, 400, false},
	} {
		run := reporttest.Latencies()
		run.Bench[0].Metrics[0].Series = true
		c.change(&run.Bench[0].Metrics[0])
		for i := range run.Trials {
			trial := &run.Trials[i]
			trial.Samples = nil
			for _, v := range trial.Distributions[0].Tail.Values[:min(c.n, 60)] {
				trial.Samples = append(trial.Samples, result.Sample{Metric: "Exec", Value: v})
			}
			for len(trial.Samples) < c.n {
				trial.Samples = append(trial.Samples, result.Sample{Metric: "Exec", Value: 0.01 + 1e-6*float64(len(trial.Samples))})
			}
			trial.Distributions = nil
		}
		w := cell(t, benchmark(t, model(run), reporttest.LatencyBenchmark), "Exec", reporttest.BoundedTarget).Worst
		if (w != nil) != c.want {
			t.Errorf("%s: the worst case is %+v", name, w)
		}
		if w != nil && w.N != 6*c.n {
			t.Errorf("%s: %d samples, want %d", name, w.N, 6*c.n)
		}
	}
}

// The largest possible count of an import is not a negative number of samples.
func TestWorstCaseOfHostileCounts(t *testing.T) {
	run := reporttest.Latencies()
	for i := range run.Trials {
		run.Trials[i].Distributions[0].Counts[0] = math.MaxUint64
	}
	w := cell(t, benchmark(t, model(run), reporttest.LatencyBenchmark), "Exec", reporttest.BoundedTarget).Worst
	if w == nil || w.N <= 0 {
		t.Errorf("the worst case is %+v", w)
	}
}
