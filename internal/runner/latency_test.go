package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/latency"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Many times become one distribution with the largest ones whole, and leave neither phases nor containers behind.
//
// Invariant many-times.
func TestManyTimesAreReduced(t *testing.T) {
	const samples = 2 * latency.Kept
	l := newHarness(t, "fake/a@create=10ms,start=5ms")
	l.work("latency.test", func(ctx context.Context, tr bench.Trial) error {
		for n := range samples {
			spec := tr.Spec(probe.Exit(0)...)
			output := tr.Watch()
			spec.Process.Stdout = output
			c, span, err := tr.Create(ctx, spec)
			if err != nil {
				return err
			}
			if err := c.Delete(ctx); err != nil {
				return err
			}
			tr.Latency.Forget(c, output)
			if err := tr.Latency.Sample("Value", span.Length()+time.Duration(n%100)*time.Microsecond); err != nil {
				return err
			}
		}
		tr.Record("Value", tr.Latency.Quantile("Value", 1).Seconds())
		return nil
	})
	l.ok()
	trial := l.trials[0]
	if trial.Status != result.OK {
		t.Fatalf("the trial is %s because %q", trial.Status, trial.Reason)
	}
	if len(trial.Phases) != 1 || len(trial.Samples) != 1 {
		t.Errorf("%d phases and the samples %v are left", len(trial.Phases), trial.Samples)
	}
	if len(trial.Distributions) != 1 || trial.Distributions[0].Tail == nil || len(trial.Distributions[0].Tail.At) != latency.Kept {
		t.Fatalf("the distributions are %+v", trial.Distributions)
	}
	run := result.Run{Targets: []result.Target{{Name: trial.Target}}, Bench: []result.Benchmark{{
		Name: trial.Benchmark, Metrics: []result.Metric{{Name: "Value", Unit: result.Seconds, Better: result.Lower}},
	}}}
	must.Do(t, run.ValidateTrial(&trial))
}

// A time from a clock that went wrong fails the trial.
func TestTimeOfAWrongClockFailsTheTrial(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("latency.test", func(_ context.Context, tr bench.Trial) error { return tr.Latency.Sample("Value", -time.Second) })
	if _, err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if trial := l.trials[0]; trial.Status != result.Failed || !strings.Contains(trial.Reason, "the clock is wrong") || trial.Distributions != nil {
		t.Errorf("the trial is %s because %q, with %v", trial.Status, trial.Reason, trial.Distributions)
	}
}
