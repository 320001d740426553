package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// shifted is a clock whose real-time clock is set during a trial.
type shifted struct {
	*fake.Clock
	offset time.Duration
}

func (c *shifted) Real() time.Time { return c.Clock.Now().Add(c.offset) }

// The times of other programs are on the clock of the trial. A trial fails if the clock of the node was set during it.
//
// Invariant clock-step.
func TestTimesOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		step   time.Duration // of the real-time clock during the trial
		error  time.Duration // of the node's clock
		reason string
	}{
		{"", 0, 0, ""},
		{"slewed", 900 * time.Microsecond, 0, ""},
		{"set forward", 2 * ms, 0, "the real-time clock of the node was set by 2ms during the trial"},
		{"set back", -time.Hour, 0, "the real-time clock of the node was set by -1h0m0s during the trial"},
		{"another clock, late", 0, time.Second, "the node's time of the stage FirstLine is outside of the trial"},
		{"another clock, early", 0, -time.Minute, "the node's time of the stage FirstLine is outside of the trial"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			clock := &shifted{Clock: l.clock, offset: time.Hour}
			l.config.Clock = clock
			l.work("x.pods", func(ctx context.Context, trial bench.Trial) error {
				_, err := trial.Sleep(ctx, 5*ms)
				must.Do(t, err)
				stages, err := trial.Pods.Observe()
				must.Do(t, err)
				ctx = stages.Within(ctx)
				_, err = trial.Sleep(ctx, 30*ms)
				must.Do(t, err)
				engine.MarkAt(ctx, engine.StageFirstLine, clock.Real().Add(tt.error-10*ms))
				engine.MarkAt(ctx, engine.StageFirstLine, clock.Real()) // the first report counts
				engine.Mark(ctx, engine.StageReady)
				clock.offset += tt.step
				first, ok := stages.At(engine.StageFirstLine)
				if ready, isReady := stages.At(engine.StageReady); !ok || !isReady || ready != 35*ms || tt.reason == "" && first != 25*ms {
					t.Errorf("the stages are %v, %t and %v, %t", first, ok, ready, isReady)
				}
				if _, ok := stages.At(engine.StageDeleted); ok {
					t.Error("a stage without a report is known")
				}
				trial.Record("Value", first.Seconds())
				return nil
			})
			l.ok()
			trial := l.trials[0]
			if tt.reason == "" && (trial.Status != result.OK || len(trial.Samples) != 1) ||
				tt.reason != "" && (trial.Status != result.Failed || len(trial.Samples) > 0 || !strings.Contains(trial.Reason, tt.reason)) {
				t.Errorf("the trial is %s because of %q, want %q", trial.Status, trial.Reason, tt.reason)
			}
		})
	}
}

// plain is an engine without the optional interfaces of a fake one.
type plain struct{ engine.Engine }

func TestContainersOfAMachineHaveNoStages(t *testing.T) {
	l := newHarness(t)
	l.config.Targets = []runner.Target{{Name: "fake/a", Engine: plain{l.open("fake/a").Engine}}}
	l.work("x.observe", func(_ context.Context, trial bench.Trial) error {
		_, err := trial.Pods.Observe()
		return err
	})
	l.work("x.ping", func(ctx context.Context, trial bench.Trial) error {
		_, err := trial.Pods.Ping(ctx)
		return err
	})
	l.ok()
	for _, trial := range l.trials {
		if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "touchstone cluster run") {
			t.Errorf("%s: %s because of %q", trial.Benchmark, trial.Status, trial.Reason)
		}
	}
}
