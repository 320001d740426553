package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// outages explain the next failures, each by an outage of a minute.
type outages struct {
	clock    *fake.Clock
	failures int
	during   func() // an outage; may be nil
}

func (o *outages) Begin(context.Context) func(context.Context, error) string {
	return func(ctx context.Context, _ error) string {
		if o.failures == 0 {
			return ""
		}
		o.failures--
		if o.during != nil {
			o.during()
		}
		_ = o.clock.Sleep(ctx, time.Minute) // the run may end
		return "the node\nis away"
	}
}

// A trial that an outage interrupts is repeated with its number. It is no evidence against its target.
//
// Invariant outage-trials: A trial that fails because its node or the API server is away is repeated, and is no evidence against its target.
func TestOutageIsNoEvidence(t *testing.T) {
	for _, tt := range []struct{ name, target string }{
		{"failures", "fake/a@fail=start#2+start#3+start#5+start#6+start#8+start#9"},
		{"timeouts", "fake/a@hang=start#2+start#3+start#5+start#6+start#8+start#9"},
		{"clean-up", "fake/a@hang=delete#2+delete#3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, tt.target)
			l.config.Stop.Min = 5
			shortage := &outages{clock: l.clock, failures: 6}
			l.config.Outages = shortage
			l.work("test.one.x", abandoned)
			out := l.ok()
			if len(l.trials) != 5 || out.Counts[result.OK] != 5 || l.trials[4].Seq != 5 {
				t.Errorf("recorded %v, want five successful trials", spell(l.trials))
			}
			if len(out.Caveats) != 1 || !strings.Contains(out.Caveats[0], "were repeated") || !strings.HasSuffix(out.Caveats[0], "the last reason: the node is away") {
				t.Errorf("the caveats are %q, want one about the outages", out.Caveats)
			}
			if shortage.failures == 6 {
				t.Error("no outage was reported")
			}
		})
	}
}

// A benchmark that takes a failed call for a result, as the end of a density, has none during an outage.
func TestOutageIsNoResult(t *testing.T) {
	l := newHarness(t, "fake/a@fail=start#2")
	l.config.Outages = &outages{clock: l.clock, failures: 1}
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		_, err := bench.Start(ctx, t)
		t.Record("Value", float64(len(fmt.Sprint(err))))
		return nil
	})
	l.config.Stop.Min = 2
	l.ok()
	for _, trial := range l.trials {
		if trial.Status != result.OK || trial.Samples[0].Value != float64(len("<nil>")) {
			t.Errorf("trial %d is %s with the samples %v", trial.Seq, trial.Status, trial.Samples)
		}
	}
	if len(l.trials) != 2 {
		t.Errorf("recorded %v, want two trials", spell(l.trials))
	}
}

// abandoned leaves its container to the clean-up.
func abandoned(ctx context.Context, t bench.Trial) error {
	_, err := bench.Start(ctx, t)
	if err == nil {
		t.Record("Value", 1)
	}
	return err
}

// A target that takes its node down in each attempt has failed.
func TestOutageOfEachAttempt(t *testing.T) {
	l := newHarness(t, "fake/a@fail=start")
	l.config.Outages = &outages{clock: l.clock, failures: 1000}
	l.work("test.one.x", live)
	l.ends(result.Failed, "an outage interrupted each of 3 attempts: the node is away")
}

// A run that ends during an outage has no record of the trial, and a resumed run repeats it.
func TestInterruptionDuringAnOutage(t *testing.T) {
	l := newHarness(t, "fake/a@fail=start#2")
	l.config.Stop.Min = 3
	ctx, interrupt := context.WithCancel(t.Context())
	l.config.Outages = &outages{clock: l.clock, failures: 1, during: interrupt}
	l.work("test.one.x", live)
	out, err := l.run(ctx)
	must.Do(t, err)
	if !out.Interrupted || len(l.trials) != 1 {
		t.Errorf("Run() = %+v, recorded %v; want one trial and an interruption", out, spell(l.trials))
	}
	next := l.again()
	next.config.Outages = runner.NoOutages{}
	next.config.Targets[0].Engine = newHarness(t, "fake/a").config.Targets[0].Engine
	if out := next.ok(); out.Counts[result.OK] != 3 || next.trials[0].Seq != 2 {
		t.Errorf("the resumed run recorded %v", spell(next.trials))
	}
}
