package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Invariant clock: Only the runner (and the host's sampler) reads a clock; engines and benchmarks cannot.
// Invariant timed-region.
func TestPhasesAreExact(t *testing.T) {
	l := newHarness(t, "fake/a@create=11ms,start=7ms,kill=2ms,exit=3ms,delete=5ms")
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		c, err := bench.Start(ctx, t)
		if err != nil {
			return err
		}
		destroy, _, err := c.Destroy(ctx, t)
		if err == nil {
			t.Record("Value", destroy.Seconds())
		}
		return err
	})
	l.ok()
	trial := l.only()
	want := []result.Phase{
		{Name: "create", Start: 0, Duration: 11 * ms},
		{Name: "start", Start: 11 * ms, Duration: 7 * ms},
		{Name: "kill", Start: 18 * ms, Duration: 2 * ms},
		{Name: "exit", Start: 20 * ms, Duration: 3 * ms},
		{Name: "delete", Start: 23 * ms, Duration: 5 * ms},
	}
	expect.Equal(t, "phases", want, trial.Phases)
	expect.Equal(t, "samples", []result.Sample{{Metric: "Value", Value: 0.010}}, trial.Samples)
	if trial.Elapsed != 28*ms {
		t.Errorf("the trial took %v, want 28ms", trial.Elapsed)
	}
}

// A phase lasts from the start of its first step to the end of its last one.
//
// Invariant timed-region: A timed region is exactly the recorded steps of one engine call.
func TestStepsBoundThePhase(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		advance := l.clock.Advance
		step := func(ctx context.Context, name string, d time.Duration) error {
			return engine.Step(ctx, name, func() error { advance(d); return nil })
		}
		span, err := t.Time(ctx, "create", func(ctx context.Context) error {
			advance(1 * ms) // the bundle
			err := errors.Join(step(ctx, "RunPodSandbox", 2*ms), step(ctx, "CreateContainer", 4*ms))
			advance(8 * ms) // a confirmation
			return err
		})
		t.Record("Value", span.Seconds())
		_, startErr := t.Time(ctx, "start", func(ctx context.Context) error {
			advance(1 * ms)
			return engine.Call(ctx, func() error { advance(16 * ms); return nil })
		})
		return errors.Join(err, startErr)
	})
	l.ok()
	want := []result.Phase{
		{Name: "create", Start: 1 * ms, Duration: 6 * ms},
		{Name: "create/RunPodSandbox", Start: 1 * ms, Duration: 2 * ms},
		{Name: "create/CreateContainer", Start: 3 * ms, Duration: 4 * ms},
		{Name: "start", Start: 16 * ms, Duration: 16 * ms},
	}
	trial := l.only()
	expect.Equal(t, "phases", want, trial.Phases)
	expect.Equal(t, "samples", []result.Sample{{Metric: "Value", Value: 0.006}}, trial.Samples)
}

// An engine may repeat a step that has failed. Only the time of the step that works is a sample; both are phases.
func TestFailedStepIsNoSample(t *testing.T) {
	for _, tt := range []struct {
		steps bool
		want  []result.Sample
	}{
		{true, []result.Sample{{Metric: "Value", Value: 0.002}}},
		{false, nil}, // the benchmark does not want samples of steps, whatever its metrics are called
	} {
		l := newHarness(t, "fake/a")
		l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
			advance := l.clock.Advance
			_, err := t.Time(ctx, "delete", func(ctx context.Context) error {
				_ = engine.Step(ctx, "Value", func() error { advance(1 * ms); return errors.New("too early") })
				return engine.Step(ctx, "Value", func() error { advance(2 * ms); return nil })
			})
			return err
		})
		l.config.Work[0].Benchmark.Steps = tt.steps
		l.ok()
		trial := l.only()
		expect.Equal(t, fmt.Sprintf("samples with Steps = %v", tt.steps), tt.want, trial.Samples)
		if len(trial.Phases) != 3 {
			t.Errorf("phases = %+v, want the method and both steps", trial.Phases)
		}
	}
}

// A step that was refused without an effect is no part of the method.
func TestRefusedStepIsNotMeasured(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		advance := l.clock.Advance
		_, err := t.Time(ctx, "pause", func(ctx context.Context) error {
			_ = engine.Call(ctx, func() error { advance(1 * ms); return fmt.Errorf("%w: it is paused", engine.ErrRefused) })
			advance(2 * ms) // the wait for the right state
			return engine.Call(ctx, func() error { advance(4 * ms); return nil })
		})
		return err
	})
	l.ok()
	expect.Equal(t, "phases", []result.Phase{{Name: "pause", Start: 3 * ms, Duration: 4 * ms}}, l.only().Phases)
}

// A failed trial is recorded with its reason and without samples.
//
// Invariant failures: A failure never becomes a number.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		target string
		run    func(context.Context, bench.Trial) error
		status result.Status
		reason string // a part
		output string // a part
	}{
		{"fake/a@fail=create", live, result.Failed, "scripted fault: call 1 of create fails", ""},
		{"fake/a@die=start", live, result.Failed, "the output ended before its first line did: unexpected EOF", ""},
		{"fake/a@garbage=1", live, result.Failed, `instead of "ready"`, "\x00\uFFFD{\"metric\": gar\n"},
		{"fake/a@fail=wait", exit, result.Failed, "scripted fault: call 1 of wait fails", ""},
		{"fake/a", func(ctx context.Context, t bench.Trial) error {
			t.Record("Value", 1)
			_, err := bench.InContainer(ctx, t, t.Spec(probe.Path, "dance"))
			return err
		}, result.Failed, `the program ["/probe" "dance"] ended: exit code 2`, "probe: unknown command dance\n"},
		{"fake/a", runsProgram, result.Failed, `execute "/usr/bin/program": no such file or directory`, ""},
		{"fake/a@hang=start", live, result.Timeout, "start took longer than its limit of 1m0s", ""},
		{"fake/a@hang=wait", exit, result.Timeout, "the trial took longer than its limit of 1h0m0s", ""},
		{"fake/a@hang=delete#1", live, result.Timeout, "the clean-up took longer than its limit of 1m0s", "ready\n"},
		{"fake/a@hang=start#1+delete#1", live, result.Timeout, "the clean-up took longer than its limit of 10s", ""},
		{"fake/a@fail=delete#1", live, result.Failed, "clean up: delete container", "ready\n"},
		{"fake/a@fail=delete#1", func(ctx context.Context, t bench.Trial) error {
			if err := live(ctx, t); err != nil {
				return err
			}
			return &engine.UnsupportedError{What: "something", Reason: "it cannot be"}
		}, result.Failed, "something: it cannot be\nclean up: delete container", "ready\n"},
		// Its error for the cancelled context does not wrap the cause.
		{"fake/a@hang=start", func(ctx context.Context, t bench.Trial) error {
			if live(ctx, t) != nil {
				return errBroken
			}
			return nil
		}, result.Failed, errBroken.Error(), ""},
		{"fake/a@start=40s,ready=40s,hang=wait", func(ctx context.Context, t bench.Trial) error {
			if exit(ctx, t) != nil {
				return errBroken
			}
			return nil
		}, result.Timeout, "the trial took longer than its limit of 1h0m0s: " + errBroken.Error(), ""},
		{"fake/a@hang=start", func(ctx context.Context, t bench.Trial) error {
			c, _, err := t.Create(ctx, t.Spec(probe.Ready()...))
			if err != nil {
				return err
			}
			_, err = t.Time(ctx, "start", func(ctx context.Context) error {
				if c.Start(ctx) != nil {
					return errBroken
				}
				return nil
			})
			return err
		}, result.Timeout, "start took longer than its limit of 1m0s: " + errBroken.Error(), ""},
		{"fake/a", func(ctx context.Context, t bench.Trial) error {
			if err := live(ctx, t); err != nil {
				return err
			}
			panic("index out of range")
		}, result.Failed, "the benchmark itself is broken, please report it: index out of range", "ready\n"},
		{"fake/a", func(_ context.Context, t bench.Trial) error {
			t.Record("Valeu", 1)
			return nil
		}, result.Failed, `benchmark test.one.x records "Valeu", which it does not declare`, ""},
		{"fake/a", func(_ context.Context, t bench.Trial) error {
			t.Param("size")
			return nil
		}, result.Failed, `the benchmark reads the parameter "size", which it does not declare`, ""},
	} {
		t.Run(tt.target+" "+tt.reason, func(t *testing.T) {
			l := newHarness(t, tt.target)
			l.work("test.one.x", tt.run)
			l.work("test.two.x", func(context.Context, bench.Trial) error { return nil })
			outcome := l.ok()
			if len(l.trials) != 2 || l.trials[1].Status != result.OK {
				t.Fatalf("the run did not go on: %v", spell(l.trials))
			}
			trial := l.trials[0]
			if trial.Status != tt.status || !strings.Contains(trial.Reason, tt.reason) {
				t.Errorf("%s because %q; want %s because of %q", trial.Status, trial.Reason, tt.status, tt.reason)
			}
			if !strings.Contains(trial.Output, tt.output) || tt.output == "" && trial.Output != "" {
				t.Errorf("output %q, want %q", trial.Output, tt.output)
			}
			if len(trial.Samples)+len(trial.Distributions) > 0 {
				t.Errorf("a %s trial has the samples %v", trial.Status, trial.Samples)
			}
			if outcome.Counts[tt.status] != 1 {
				t.Errorf("counts %v", outcome.Counts)
			}
		})
	}
}

// An interrupted trial is not recorded, but cleaned up.
func TestInterrupted(t *testing.T) {
	for _, place := range []string{"before", "create", "start", "wait", "end"} {
		t.Run(place, func(t *testing.T) {
			l := newHarness(t, "fake/a", "fake/b")
			l.config.Stop.Min, l.config.Warmup = 3, 1
			ctx, cancel := context.WithCancelCause(t.Context())
			trials := 0
			stop := func(position string) {
				if position == place && trials == 4 {
					cancel(errBroken)
				}
			}
			dirs := map[string]bool{}
			l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
				trials++
				stop("before")
				dir, err := t.Storage.Scratch(bench.Disk)
				if err != nil {
					return err
				}
				dirs[dir] = true
				stop("create")
				c, _, err := t.Create(ctx, t.Spec(probe.Ready()...))
				if err != nil {
					return err
				}
				stop("start")
				if _, err := t.Time(ctx, "start", c.Start); err != nil {
					return err
				}
				if place == "wait" && trials == 4 {
					go stop("wait") // during a Wait that does not return
					_, err := c.Wait(ctx)
					return err
				}
				stop("end")
				return nil
			})
			out, err := l.run(ctx)
			if err != nil || !out.Interrupted {
				t.Fatalf("Run() = %+v, %v; want an interrupted run", out, err)
			}
			want := 3
			if place == "end" { // the measurement was complete
				want = 4
			}
			if len(l.trials) != want || out.Counts[result.OK] != want || trials != 4 {
				t.Errorf("%d trials began; recorded are %v", trials, spell(l.trials))
			}
			for dir := range dirs {
				if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the directory %s of a trial is left: %v", dir, err)
				}
			}
		})
	}
}

// A benchmark leaves containers in every state, created one by one and concurrently.
//
// Invariant no-leftovers.
func TestLeftContainersAreRemoved(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop.Min = 2
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		errs := make(chan error)
		for i := range 8 {
			go func() {
				c, _, err := t.Create(ctx, t.Spec(probe.Ready()...))
				if err == nil && i%2 > 0 {
					_, err = t.Time(ctx, "start", c.Start)
				}
				if err == nil && i%4 > 2 {
					err = c.Kill(ctx, syscall.SIGKILL)
				}
				t.Record("Value", float64(i))
				errs <- err
			}()
		}
		var failures []error
		for range 8 {
			failures = append(failures, <-errs)
		}
		return errors.Join(failures...)
	})
	l.ok() // checks that no container is left
	for _, trial := range l.trials {
		if trial.Status != result.OK || len(trial.Samples) != 8 || len(trial.Phases) != 12 {
			t.Errorf("%v with %d samples and %d phases: %s", spell(l.trials), len(trial.Samples), len(trial.Phases), trial.Reason)
		}
	}
}

func TestSpecsAndScratchDifferByTrial(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop.Min = 2
	ids, dirs := map[string]bool{}, map[string]bool{}
	l.work("test.one.x", func(_ context.Context, t bench.Trial) error {
		for range 12 {
			id := t.Spec("/probe").ID
			for oldID := range ids {
				// runsc accepts a prefix of an ID as the ID.
				if strings.HasPrefix(id, oldID) || strings.HasPrefix(oldID, id) {
					l.Errorf("IDs %s and %s are ambiguous", id, oldID)
				}
			}
			ids[id] = true
			dir, err := t.Storage.Scratch(bench.Disk)
			if err != nil {
				return err
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > 0 || dirs[dir] || !strings.HasPrefix(dir, l.config.Data+"/") {
				l.Errorf("scratch directory %s holds %v, %v", dir, entries, err)
			}
			dirs[dir] = true
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	l.ok()
	if len(ids) != 24 || len(dirs) != 24 {
		t.Errorf("%d IDs and %d directories, want 24 each", len(ids), len(dirs))
	}
	for id := range ids {
		if !strings.HasPrefix(id, engine.Prefix+runID+"-") {
			t.Errorf("ID %s does not carry the run's", id)
		}
	}
	if left, err := os.ReadDir(l.config.Data); err != nil || len(left) > 0 {
		t.Errorf("left in the run's data directory: %v, %v", left, err)
	}
}

// The cost of a trial excludes the cost of earlier trials.
func TestUsageOfOneTrial(t *testing.T) {
	l := newHarness(t, "fake/a@cpu=12ms,mem=1000")
	l.work("test.many.x", func(ctx context.Context, t bench.Trial) error { return errors.Join(live(ctx, t), live(ctx, t)) })
	var got []engine.Usage
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		if err := exit(ctx, t); err != nil {
			return err
		}
		u, err := t.Cost.Usage()
		got = append(got, u)
		return err
	})
	l.work("test.destroy.x", func(ctx context.Context, t bench.Trial) error {
		c, err := bench.Start(ctx, t)
		if err != nil {
			return err
		}
		if _, _, err := c.Destroy(ctx, t); err != nil {
			return err
		}
		u, err := t.Cost.Usage()
		got = append(got, u)
		return err
	})
	l.ok()
	want := []engine.Usage{{CPU: 12 * ms, PeakMemory: 1000}, {CPU: 12 * ms, PeakMemory: 1000}}
	expect.Equal(t, "usage", want, got)
}

// sleepy is an engine with unknown cost.
type sleepy struct{ engine.Engine }

func TestUnknownUsage(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Targets[0].Engine = sleepy{l.config.Targets[0].Engine}
	l.work("test.one.x", func(_ context.Context, t bench.Trial) error {
		_, err := t.Cost.Usage()
		if !engine.Unsupported(err) {
			l.Errorf("Usage() = %v, want an UnsupportedError", err)
		}
		return bench.RecordCost(t)
	})
	l.ok()
	if trial := l.only(); trial.Status != result.OK || len(trial.Samples) > 0 {
		t.Errorf("%s with the samples %v: a cost that is not known is left out", trial.Status, trial.Samples)
	}
}

func TestNoiseCoversTheTrial(t *testing.T) {
	l := newHarness(t, "fake/a")
	watch := &watchman{harness: l}
	l.config.Noise = watch
	l.work("test.one.x", live)
	l.work("test.two.x", live)
	l.config.Work[1].Benchmark.Waits = []bench.Medium{bench.Disk}
	l.ok()
	want := []string{"begin 0s", "end 23ms []", "begin 23ms", "end 46ms [disk]"}
	expect.Equal(t, "the host's noise was looked at", want, watch.seen)
	if marks := l.trials[1].Host.Marks; !cmp.Equal(marks, []string{"noisy"}) {
		t.Errorf("marks %q", marks)
	}
}

type watchman struct {
	*harness
	seen []string
}

func (w *watchman) since() string {
	return w.clock.Now().Sub(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)).String()
}

func (w *watchman) Begin() func([]bench.Medium) result.Disturbance {
	w.seen = append(w.seen, "begin "+w.since())
	return func(waits []bench.Medium) result.Disturbance {
		w.seen = append(w.seen, fmt.Sprintf("end %s %v", w.since(), waits))
		return result.Disturbance{Marks: []string{"noisy"}}
	}
}
