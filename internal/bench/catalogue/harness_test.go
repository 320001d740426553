package catalogue_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const ms = time.Millisecond

const runID = "20260101-000000-test"

// find returns a benchmark of the catalogue.
func find(t testing.TB, name string) bench.Benchmark {
	t.Helper()
	b, ok := catalogue.Catalogue{}.Lookup(name)
	if !ok {
		t.Fatalf("the catalogue has no %s", name)
	}
	return b
}

// open opens a fake target with the image's programs.
func open(t testing.TB, targetName string) (*fake.Driver, engine.Engine, *fake.Clock) {
	t.Helper()
	clock := fake.NewClock()
	driver := fake.NewDriver(clock)
	install(driver)
	parsed, err := target.Parse(targetName)
	must.Do(t, err)
	e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: runID})
	must.Do(t, err)
	return driver, e, clock
}

// run executes one trial of a benchmark on a fake target, as a run does.
func run(t testing.TB, name, targetName string, overrides bench.Params, changes ...func(*runner.Config)) result.Trial {
	t.Helper()
	driver, e, clock := open(t, targetName)
	trial := runOn(t, name, e, clock, overrides, changes...)
	if left := driver.Leftovers(); len(left) > 0 {
		t.Errorf("%s leaves the containers %q", name, left)
	}
	return trial
}

// runOn executes one trial on an engine, with changes to the configuration of the run.
func runOn(t testing.TB, name string, e engine.Engine, clock meter.Clock, overrides bench.Params, changes ...func(*runner.Config)) result.Trial {
	t.Helper()
	var trials []result.Trial
	config := runner.Config{
		RunID: runID, Images: map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: "/"}, bench.WorkloadImage: {Rootfs: "/"}},
		Data: t.TempDir(), Memory: t.TempDir(), Work: []plan.Work{{Benchmark: find(t, name), Params: resolved(t, name, overrides)}},
		Targets:  []runner.Target{{Name: "under/test", Engine: e}},
		Registry: images{}, Stop: stats.StopRule{Min: 1}, TrialLimit: time.Hour, CallLimit: 10 * time.Minute,
		Clock: clock, Noise: quiet{}, Observer: quiet{}, Energy: &growing{clock: clock},
		Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
	}
	for _, change := range changes {
		change(&config)
	}
	if _, err := runner.Run(t.Context(), config); err != nil || len(trials) != 1 {
		t.Fatalf("Run() = %v with %d trials, want one", err, len(trials))
	}
	return trials[0]
}

// images is a registry of empty images.
type images struct{}

func (images) Fresh(_ context.Context, size int64) (string, error) {
	return fmt.Sprintf("fresh-%d", size), nil
}

func (images) Minimal(_ context.Context, arch, _ string) (string, []byte, error) {
	return "minimal-" + arch, nil, nil
}

func (images) Served(string) (sum, size int64) { return 0, 0 }

func (images) Forget(string) {}

// growing is a gauge of energy. The power in watts is the time in seconds, so that work takes more than the idle time before.
type growing struct {
	clock meter.Clock
	began time.Time
}

func (*growing) Source() string { return "a gauge" }

func (g *growing) Joules() (float64, error) {
	if g.began.IsZero() {
		g.began = g.clock.Now()
	}
	seconds := g.clock.Now().Sub(g.began).Seconds()
	return seconds * seconds / 2, nil
}

type quiet struct{}

func (quiet) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}
func (quiet) Started(result.Trial, runner.Progress) {}
func (quiet) Ended(result.Trial)                    {}

// ok is run for a trial that must succeed.
func ok(t testing.TB, name, targetName string, overrides bench.Params) result.Trial {
	t.Helper()
	return mustBeOK(t, run(t, name, targetName, overrides))
}

// mustBeOK returns a trial that must have succeeded.
func mustBeOK(t testing.TB, trial result.Trial) result.Trial {
	t.Helper()
	if trial.Status != result.OK {
		t.Fatalf("%s %s on %s: %s because %s", trial.Benchmark, trial.Params, trial.Target, trial.Status, trial.Reason)
	}
	return trial
}

// checkEnd checks the end of a trial: its status and a part of its reason. Only a trial that is OK has values.
func checkEnd(t testing.TB, what string, trial result.Trial, status result.Status, reason string) {
	t.Helper()
	if trial.Status != status || !strings.Contains(trial.Reason, reason) || status != result.OK && (trial.Reason == "" || len(trial.Samples)+len(trial.Distributions) > 0) {
		t.Errorf("%s: %s because %.300q with %d samples; want %s because of %q", what, trial.Status, trial.Reason, len(trial.Samples), status, reason)
	}
}

// checkSamples checks the values of a trial with one value of each metric.
func checkSamples(t testing.TB, what string, trial result.Trial, want map[string]float64, options ...cmp.Option) {
	t.Helper()
	checkEnd(t, what, trial, result.OK, "")
	got := map[string]float64{}
	for _, s := range trial.Samples {
		got[s.Metric] = s.Value
	}
	expect.Equal(t, what, want, got, options...)
}

// resolved returns the quick parameters of a benchmark with the given ones.
func resolved(t testing.TB, name string, overrides bench.Params) bench.Params {
	t.Helper()
	params, err := find(t, name).Resolve(overrides, false)
	must.Do(t, err)
	return params
}

// still is a stopped clock.
type still struct{}

// Real implements meter.Clock.
func (s still) Real() time.Time { return s.Now() }

func (still) Now() time.Time { return time.Time{} }

func (still) WithTimeoutCause(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (still) Every(time.Duration, func()) (stop func()) { return func() {} }

func (still) Sleep(context.Context, time.Duration) error { return nil }

// process is the process of an imitated container that runs until it ends.
type process struct {
	once  sync.Once
	ended chan struct{}
	exit  engine.Exit
}

// finish ends the process. last is called before its exit is known.
func (p *process) finish(exit engine.Exit, last func()) {
	p.once.Do(func() {
		p.exit = exit
		last()
		close(p.ended)
	})
}

func (p *process) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-p.ended:
		return p.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, context.Cause(ctx)
	}
}

// scripted is an engine whose containers write the same output and exit at once, for every program.
type scripted struct {
	stdout, stderr string
	exit           engine.Exit
	created        func(engine.Spec) // called with the spec of each container; may be nil
}

func (scripted) Info() engine.Info                { return engine.Info{} }
func (scripted) Supports(engine.Capability) error { return nil }
func (scripted) Close() error                     { return nil }
func (e scripted) Create(_ context.Context, s engine.Spec) (engine.Container, error) {
	if e.created != nil {
		e.created(s)
	}
	return &scriptedContainer{scripted: e, spec: s}, nil
}

type scriptedContainer struct {
	scripted
	spec engine.Spec
}

func (c *scriptedContainer) ID() string { return c.spec.ID }

func (c *scriptedContainer) Start(context.Context) error {
	for w, text := range map[io.Writer]string{c.spec.Process.Stdout: c.stdout, c.spec.Process.Stderr: c.stderr} {
		if w != nil {
			_, _ = io.WriteString(w, text)
		}
	}
	c.spec.Process.CloseOutput()
	return nil
}

func (c *scriptedContainer) Kill(context.Context, syscall.Signal) error { return nil }

func (c *scriptedContainer) Wait(context.Context) (engine.Exit, error) { return c.exit, nil }

func (c *scriptedContainer) State(context.Context) (engine.State, error) { return engine.Stopped, nil }

func (c *scriptedContainer) Delete(context.Context) error { return nil }
