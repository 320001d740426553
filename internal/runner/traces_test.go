package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// A delete that returns success and does nothing fails the trial, whether the benchmark or the runner has called it.
//
// Invariant lying-calls.
func TestDeleteThatLies(t *testing.T) {
	for name, run := range map[string]func(context.Context, bench.Trial) error{
		"of the benchmark": func(ctx context.Context, t bench.Trial) error {
			c, err := bench.Start(ctx, t)
			if err != nil {
				return err
			}
			span, _, err := c.Destroy(ctx, t)
			t.Record("Value", span.Seconds())
			return err
		},
		"of the runner": func(ctx context.Context, t bench.Trial) error {
			_, span, err := t.Create(ctx, t.Spec(probe.Ready()...))
			t.Record("Value", span.Seconds())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHarness(t, "fake/a@lie=delete")
			l.work("test.one.x", run)
			if _, err := runner.Run(t.Context(), l.config); err != nil { // the lie leaves a container
				t.Fatal(err)
			}
			trial := l.only()
			const reason = "returned success without deleting it: want nothing of it, got the container, which is "
			if trial.Status != result.Failed || !strings.Contains(trial.Reason, reason) || len(trial.Samples) > 0 {
				t.Errorf("%s because %q with %d samples; want it failed because %q", trial.Status, trial.Reason, len(trial.Samples), reason)
			}
		})
	}
}
