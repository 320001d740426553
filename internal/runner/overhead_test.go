package runner_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestMeasureOverhead(t *testing.T) {
	probe := filepath.Join(t.TempDir(), "probe")
	must.Do(t, image.WriteProbe(probe))
	launcher, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, launcher.Close())
	})
	o, err := runner.MeasureOverhead(t.Context(), meter.System{}, launcher, probe)
	must.Do(t, err)
	if o.EmptyRegion <= 0 || o.Exec <= o.EmptyRegion {
		t.Errorf("%+v: an empty region takes some time, and a process more", o)
	}
	// On a stopped clock every region has the length 0.
	if o, err = runner.MeasureOverhead(t.Context(), fake.NewClock(), launcher, probe); err != nil || o.EmptyRegion != 0 || o.Exec != 0 {
		t.Errorf("on a clock that stands: %+v, %v", o, err)
	}
	if _, err := runner.MeasureOverhead(t.Context(), meter.System{}, launcher, probe+"-missing"); err == nil {
		t.Error("the overhead of a program that is not there was measured")
	}
}

// daemon is an engine whose daemon answers after a time.
type daemon struct {
	engine.Engine
	name  string
	clock *fake.Clock
	took  time.Duration
	err   error
}

func (d daemon) Info() engine.Info {
	return engine.Info{Target: target.Target{Engine: d.name, Runtime: "x"}}
}

func (d daemon) Ping(ctx context.Context) error {
	return errors.Join(d.clock.Sleep(ctx, d.took), d.err)
}

func TestMeasureRequests(t *testing.T) {
	clock := fake.NewClock()
	got := runner.MeasureRequests(t.Context(), clock, []runner.Target{
		{Name: "oci/missing", Err: errBroken},
		{Name: "native", Engine: struct{ engine.Engine }{}},
		{Name: "broken/x", Engine: daemon{name: "broken", clock: clock, err: errBroken}},
		{Name: "slow/x", Engine: daemon{name: "slow", clock: clock, took: 2 * time.Millisecond}},
		{Name: "slow/y", Engine: daemon{name: "slow", clock: clock, took: time.Hour}},
		{Name: "fast/x", Engine: daemon{name: "fast", clock: clock, took: time.Microsecond}},
	})
	if want := map[string]time.Duration{"slow": 2 * time.Millisecond, "fast": time.Microsecond}; !maps.Equal(got, want) {
		t.Errorf("the requests take %v, want %v", got, want)
	}
}

// BenchmarkTime measures the runner's own part of a timed region: Overhead.EmptyRegion with the context around it.
func BenchmarkTime(b *testing.B) {
	l := newHarness(b, "fake/a")
	l.config.Clock = meter.System{}
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		call := func(context.Context) error { return nil }
		for b.Loop() {
			if _, err := t.Time(ctx, "empty", call); err != nil {
				return err
			}
		}
		return nil
	})
	l.ok()
}

// BenchmarkTrial measures the runner's own part of a trial.
func BenchmarkTrial(b *testing.B) {
	l := newHarness(b, "fake/a", "fake/b")
	l.config.Stop.Min = max(1, b.N/2)
	l.config.Record = func(result.Trial) error { return nil }
	l.work("test.one.x", func(context.Context, bench.Trial) error { return nil })
	l.ok()
}
