package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const ms = time.Millisecond

// harness is a run on fake targets. It keeps the recorded trials and the calls of the observer.
type harness struct {
	testing.TB
	clock  *fake.Clock
	driver *fake.Driver
	images images
	config runner.Config

	trials  []result.Trial // as recorded
	started []result.Trial // as announced
	at      []runner.Progress
	ended   []result.Trial
}

const runID = "20260101-000000-test"

// newHarness returns a harness of one block without warm-up. No healthy trial reaches its limits.
func newHarness(t testing.TB, targets ...string) *harness {
	t.Helper()
	clock := fake.NewClock()
	l := &harness{TB: t, clock: clock, driver: fake.NewDriver(clock)}
	l.config = runner.Config{
		RunID: runID, Seed: 1, Images: map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: "/"}}, Data: t.TempDir(),
		Stop: stats.StopRule{Min: 1, Max: 1}, TrialLimit: time.Hour, CallLimit: time.Minute,
		Clock: clock, Noise: quiet{}, Observer: l, Registry: &l.images,
		Record: func(trial result.Trial) error {
			l.trials = append(l.trials, trial)
			return nil
		},
	}
	for _, name := range targets {
		l.config.Targets = append(l.config.Targets, l.open(name))
	}
	return l
}

func parsed(t testing.TB, name string) target.Target {
	t.Helper()
	parsed, err := target.Parse(name)
	must.Do(t, err)
	return parsed
}

func (l *harness) open(name string) runner.Target {
	l.Helper()
	e, err := l.driver.Open(l.Context(), parsed(l.TB, name), engine.Session{RunID: runID})
	must.Do(l, err)
	return runner.Target{Name: name, Engine: e}
}

// again returns a harness that resumes l as another process would: with its own clock and engines, and the trials of l.
func (l *harness) again() *harness {
	l.Helper()
	var names []string
	for _, t := range l.config.Targets {
		names = append(names, t.Name)
	}
	next := newHarness(l.TB, names...)
	config := l.config
	config.Targets, config.Clock, config.Observer, config.Record = next.config.Targets, next.clock, next, next.config.Record
	config.Done = slices.Concat(l.config.Done, l.trials)
	next.config = config
	return next
}

func (l *harness) Started(t result.Trial, p runner.Progress) {
	l.started, l.at = append(l.started, t), append(l.at, p)
}

func (l *harness) Ended(t result.Trial) { l.ended = append(l.ended, t) }

// work adds a benchmark.
func (l *harness) work(name string, run func(context.Context, bench.Trial) error) {
	l.config.Work = append(l.config.Work, plan.Work{Benchmark: bench.Benchmark{
		Name: name, Run: run, Metrics: []result.Metric{{Name: "Value", Unit: result.Seconds, Better: result.Lower}},
	}})
}

// run executes the plan. No container or image may be left afterwards.
func (l *harness) run(ctx context.Context) (runner.Outcome, error) {
	l.Helper()
	out, err := runner.Run(ctx, l.config)
	if left := l.driver.Leftovers(); len(left) > 0 {
		l.Errorf("containers or images are left: %q", left)
	}
	if len(l.images.left) > 0 {
		l.Errorf("images are still published: %q", l.images.left)
	}
	return out, err
}

// ok is run, which must not fail or be interrupted.
func (l *harness) ok() runner.Outcome {
	l.Helper()
	out, err := l.run(l.Context())
	if err != nil || out.Interrupted {
		l.Fatalf("Run() = %+v, %v", out, err)
	}
	return out
}

// interruptAfter executes the plan and interrupts it after n recorded trials.
func (l *harness) interruptAfter(n int) {
	l.Helper()
	ctx, interrupt := context.WithCancel(l.Context())
	record := l.config.Record
	l.config.Record = func(trial result.Trial) error {
		err := record(trial)
		if len(l.trials) == n {
			interrupt()
		}
		return err
	}
	if out, err := l.run(ctx); err != nil || !out.Interrupted {
		l.Fatalf("interrupted after trial %d: Run() = %+v, %v", n, out, err)
	}
}

// only returns the only recorded trial.
func (l *harness) only() result.Trial {
	l.Helper()
	if len(l.trials) != 1 {
		l.Fatalf("recorded %d trials, want 1: %v", len(l.trials), spell(l.trials))
	}
	return l.trials[0]
}

// ends executes a plan of one trial, which must end with the status and a part of the reason. Only a trial that is OK has values.
func (l *harness) ends(status result.Status, reason string) result.Trial {
	l.Helper()
	l.ok()
	trial := l.only()
	if trial.Status != status || !strings.Contains(trial.Reason, reason) || status != result.OK && len(trial.Samples)+len(trial.Distributions) > 0 {
		l.Errorf("%s because %q with the samples %v; want %s because of %q", trial.Status, trial.Reason, trial.Samples, status, reason)
	}
	return trial
}

// spell formats trials: "2 a.b.c fake/x block 0 ok".
func spell(trials []result.Trial) []string {
	var lines []string
	for _, t := range trials {
		block := fmt.Sprint("block ", t.Block)
		if t.Warmup {
			block = fmt.Sprint("warm-up ", t.Block)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s %s %s", t.Seq, t.Benchmark, t.Target, block, t.Status))
	}
	return lines
}

// images is a registry of empty images that lists the published ones.
type images struct {
	made int
	left []string
	err  error
	// served and size are the result of Served.
	served, size int64
}

func (i *images) Served(string) (transfer, size int64) { return i.served, i.size }

func (i *images) Fresh(_ context.Context, size int64) (string, error) {
	if i.err != nil {
		return "", i.err
	}
	i.made++
	ref := fmt.Sprintf("image-%d:%d", i.made, size)
	i.left = append(i.left, ref)
	return ref, nil
}

func (i *images) Minimal(_ context.Context, arch, dir string) (string, []byte, error) {
	if i.err != nil {
		return "", nil, i.err
	}
	i.made++
	ref := fmt.Sprintf("image-%d:%s", i.made, arch)
	i.left = append(i.left, ref)
	return ref, []byte(arch), os.Mkdir(dir, 0o755)
}

func (i *images) Forget(ref string) {
	i.left = slices.DeleteFunc(i.left, func(l string) bool { return l == ref })
}

// quiet is a host without disturbances.
type quiet struct{}

func (quiet) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}

// live creates and starts one container and does not remove it.
func live(ctx context.Context, t bench.Trial) error {
	_, err := bench.Start(ctx, t)
	if err != nil {
		return err
	}
	t.Record("Value", 1)
	return nil
}

// values returns a benchmark whose n-th trial, from 1, has the value value(n).
func values(value func(n int) float64) func(context.Context, bench.Trial) error {
	n := 0
	return func(ctx context.Context, t bench.Trial) error {
		_, err := bench.Start(ctx, t)
		if err != nil {
			return err
		}
		n++
		t.Record("Value", value(n))
		return nil
	}
}

// exit runs a container until it exits.
func exit(ctx context.Context, t bench.Trial) error {
	_, err := bench.InContainer(ctx, t, t.Spec(probe.Exit(0)...))
	return err
}

var errBroken = errors.New("the disk is on fire")

// left is the time that the run takes from the start of trial i on.
func (l *harness) left(i int) (left time.Duration) {
	for _, t := range l.ended[i:] {
		left += t.Elapsed
	}
	return left
}
