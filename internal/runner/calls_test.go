package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// Config.Calls gets the calls of each trial in the order of their begin, with steps, errors and removals.
func TestCallsOfTrials(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop.Min, l.config.Stop.Max = 2, 2
	advance := l.clock.Advance
	l.work("test.one.x", func(ctx context.Context, b bench.Trial) error {
		if _, err := bench.Start(ctx, b); err != nil {
			return err
		}
		_, err := b.Time(ctx, "update", func(ctx context.Context) error {
			_ = engine.Step(ctx, "Refused", func() error { advance(1 * ms); return errors.New("too early") })
			return engine.Step(ctx, "Update", func() error { advance(2 * ms); return nil })
		})
		b.Record("Value", 1)
		return err
	})
	var got []string
	l.config.Calls = func(c runner.Calls) {
		for _, call := range c.Calls {
			got = append(got, fmt.Sprint(c.Trial, " ", c.Benchmark, " ", c.Target, " ", c.Status, ": ", call.Name, " ", call.Duration, " ", call.Err))
		}
	}
	l.ok()
	var want []string
	for n, trial := range []string{"t1", "t2"} {
		for _, call := range []string{
			"create 10ms <nil>", "start 5ms <nil>", "update 3ms <nil>", "update/Refused 1ms too early", "update/Update 2ms <nil>",
			fmt.Sprintf("remove container touchstone-%s-t%d-00001 8ms <nil>", runID, n+1),
		} {
			want = append(want, trial+" test.one.x fake/a ok: "+call)
		}
	}
	expect.Equal(t, "the calls", want, got)
}
