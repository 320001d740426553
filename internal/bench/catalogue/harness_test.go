package catalogue_test

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
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
	if err != nil {
		t.Fatal(err)
	}
	e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: runID})
	if err != nil {
		t.Fatal(err)
	}
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
	b := find(t, name)
	params, err := b.Resolve(overrides, false)
	if err != nil {
		t.Fatal(err)
	}
	var trials []result.Trial
	config := runner.Config{
		RunID: runID, Images: map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: "/"}, bench.WorkloadImage: {Rootfs: "/"}},
		Data: t.TempDir(), Memory: t.TempDir(), Work: []plan.Work{{Benchmark: b, Params: params}},
		Targets:  []runner.Target{{Name: "under/test", Engine: e}},
		Registry: images{}, Stop: stats.StopRule{Min: 1}, TrialLimit: time.Hour, CallLimit: 10 * time.Minute,
		Clock: clock, Noise: quiet{}, Observer: quiet{}, Energy: &growing{clock: clock},
		Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
	}
	for _, change := range changes {
		change(&config)
	}
	_, err = runner.Run(t.Context(), config)
	if err != nil || len(trials) != 1 {
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
	trial := run(t, name, targetName, overrides)
	if trial.Status != result.OK {
		t.Fatalf("%s on %s: %s because %s", name, targetName, trial.Status, trial.Reason)
	}
	return trial
}

// still is a stopped clock.
type still struct{}

func (still) Now() time.Time { return time.Time{} }

func (still) WithTimeoutCause(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (still) Every(time.Duration, func()) (stop func()) { return func() {} }

func (still) Sleep(context.Context, time.Duration) error { return nil }

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
