package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

func TestMeasureOverhead(t *testing.T) {
	probe := filepath.Join(t.TempDir(), "probe")
	if err := image.WriteProbe(probe); err != nil {
		t.Fatal(err)
	}
	launcher, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := launcher.Close(); err != nil {
			t.Error(err)
		}
	})
	o, err := runner.MeasureOverhead(t.Context(), runner.SystemClock{}, launcher, probe)
	if err != nil {
		t.Fatal(err)
	}
	if o.EmptyRegion <= 0 || o.Exec <= o.EmptyRegion {
		t.Errorf("%+v: an empty region takes some time, and a process more", o)
	}
	// On a stopped clock every region has the length 0.
	if o, err = runner.MeasureOverhead(t.Context(), fake.NewClock(), launcher, probe); err != nil || o.EmptyRegion != 0 || o.Exec != 0 {
		t.Errorf("on a clock that stands: %+v, %v", o, err)
	}
	if _, err := runner.MeasureOverhead(t.Context(), runner.SystemClock{}, launcher, probe+"-missing"); err == nil {
		t.Error("the overhead of a program that is not there was measured")
	}
}

func TestSystemClock(t *testing.T) {
	before := runner.SystemClock{}.Now()
	ctx, cancel := runner.SystemClock{}.WithTimeoutCause(t.Context(), time.Nanosecond, errBroken)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errBroken) {
		t.Errorf("the cause of the end is %v", context.Cause(ctx))
	}
	if took := (runner.SystemClock{}).Now().Sub(before); took < time.Nanosecond {
		t.Errorf("a nanosecond took %v", took)
	}
}

// BenchmarkTime measures the runner's own part of a timed region: Overhead.EmptyRegion with the context around it.
func BenchmarkTime(b *testing.B) {
	l := newHarness(b, "fake/a")
	l.config.Clock = runner.SystemClock{}
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		nothing := func(context.Context) error { return nil }
		for b.Loop() {
			if _, err := t.Time(ctx, "empty", nothing); err != nil {
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
