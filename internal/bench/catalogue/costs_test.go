package catalogue_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// gauge is a gauge of energy with fixed readings.
type gauge struct {
	readings []float64
	err      error
}

func (*gauge) Source() string { return "a gauge" }

func (g *gauge) Joules() (float64, error) {
	if len(g.readings) == 0 {
		return 0, g.err
	}
	next := g.readings[0]
	g.readings = g.readings[1:]
	return next, nil
}

// Ten lifecycles of 100 ms take the idle time of 1 s. The readings are the first one, before and after the idle time, and
// after the work.
func TestEnergyOfLifecycles(t *testing.T) {
	const onTarget = "fake/a@create=60ms,start=10ms,kill=10ms,delete=20ms,exit=0s"
	trial := run(t, "operations.energy.lifecycle", onTarget, bench.Params{"idle": "1s"}, func(c *runner.Config) {
		c.Energy = &gauge{readings: []float64{5, 5, 8, 28}}
	})
	if trial.Status != result.OK {
		t.Fatalf("%s because %s", trial.Status, trial.Reason)
	}
	creations := 0
	for _, p := range trial.Phases {
		if p.Name == "create" {
			creations++
		}
	}
	if creations != 10 {
		t.Errorf("%d containers were created, want 10", creations)
	}
	for name, want := range map[string]float64{"GrossEnergy": 2, "IdleEnergy": 0.3, "Energy": 1.7} {
		if got := trial.Values(name); len(got) != 1 || math.Abs(got[0]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := trial.Conditions["energy"]; got != "a gauge" {
		t.Errorf("the gauge is %q", got)
	}
}

func TestNoEnergyIsNoNumber(t *testing.T) {
	for _, name := range []string{"operations.energy.lifecycle", "performance.energy.cpu"} {
		for what, tt := range map[string]struct {
			change func(*runner.Config)
			status result.Status
			reason string
		}{
			"no gauge": {func(c *runner.Config) { c.Energy, c.NoEnergy = nil, "the kernel offers no RAPL counter" }, result.Skipped, "energy: the kernel offers no RAPL counter"},
			"no host":  {func(c *runner.Config) { c.Energy = nil }, result.Skipped, "the targets are not on this host"},
			"a gauge that is coarse for the work": {
				func(c *runner.Config) { c.Energy = &gauge{readings: []float64{5, 5, 8, 8}} }, result.Failed, "of work: it is too coarse",
			},
			"a gauge that is coarse for the idle time": {
				func(c *runner.Config) { c.Energy = &gauge{readings: []float64{5, 5, 5, 8}} }, result.Failed, "of idleness: it is too coarse",
			},
			"a gauge that fails": {
				func(c *runner.Config) {
					c.Energy = &gauge{readings: []float64{5, 5}, err: errors.New("unplug the machine")}
				}, result.Failed, "unplug the machine",
			},
		} {
			checkEnd(t, name+" with "+what, run(t, name, "fake/a", nil, tt.change), tt.status, tt.reason)
		}
	}
}

// The fake engine's containers have 8 MiB of PSS and 256 KiB of slab each.
func TestDensityMemory(t *testing.T) {
	for _, name := range []string{"density.memory", "density.workload"} {
		trial := ok(t, name, "fake/a@mem=8388608,slab=262144", bench.Params{"containers": "10"})
		for metric, want := range map[string]float64{
			"PSSPerContainer": 8 << 20, "PSSPerContainerLow": 8 << 20, "PSSPerContainerContainer": 8 << 20, "PSSOfFirst": 8 << 20, "PSSOfTenth": 8 << 20,
			"MemoryPerContainer": 8<<20 + 256<<10, "AvailablePerContainer": 8<<20 + 256<<10, "RestPerContainerSlab": 256 << 10,
		} {
			if got := sample(t, trial, metric); !near(got, want) {
				t.Errorf("%s: %s is %v, want %v", name, metric, got, want)
			}
		}
		if curve := trial.Values("PSS"); len(curve) != 10 || curve[4] != 5*8<<20 {
			t.Errorf("%s: the curve is %v", name, curve)
		}
	}
}

func TestDensityMax(t *testing.T) {
	// 90 % of 16 GiB hold 1787 containers of 8.25 MiB, and 15 containers of 1 GiB reach the floor.
	trial := ok(t, "density.max", "fake/a@mem=8388608,slab=262144", nil)
	if got := sample(t, trial, "Containers"); got != 1787 {
		t.Errorf("the extrapolation is %v, want 1787", got)
	}
	trial = ok(t, "density.max", "fake/a@mem=1073741824,slab=0", bench.Params{"mode": "real"})
	if got := sample(t, trial, "Containers"); got != 15 || trial.Conditions["stopped by"] != "memory" {
		t.Errorf("the real number is %v because of %v, want 15 because of memory", got, trial.Conditions)
	}
	trial = ok(t, "density.max", "fake/a@mem=1073741824,fail=create#4", bench.Params{"mode": "real"})
	if got := sample(t, trial, "Containers"); got != 3 || !strings.HasPrefix(trial.Conditions["stopped by"], "an error of container 4: ") {
		t.Errorf("the real number is %v because of %v, want 3 because of an error", got, trial.Conditions)
	}
	if trial = run(t, "density.max", "fake/a@mem=1073741824,fail=create#1", bench.Params{"mode": "real"}); trial.Status != result.Failed {
		t.Errorf("without a container the trial is %s", trial.Status)
	}
	if trial = run(t, "density.max", "fake/a@mem=1073741824,hang=start#4", bench.Params{"mode": "real"}); trial.Status != result.OK {
		t.Errorf("with a container that hangs at the limit the trial is %s because %s", trial.Status, trial.Reason)
	}
}

func TestDensityChurn(t *testing.T) {
	trial := ok(t, "density.churn", "fake/a@mem=8388608,slab=262144", bench.Params{"containers": "50"})
	for metric, want := range map[string]float64{"PeakMemory": 50 * (8<<20 + 256<<10), "PeakFall": 50 * (8<<20 + 256<<10), "PeakPSS": 50 * 8 << 20, "NotReturned": 0, "PSSNotReturned": 0} {
		if got := sample(t, trial, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if len(trial.Values("PeakSwap")) > 0 {
		t.Error("the fake host has no swap, and the trial has a value of it")
	}
}

// stopping is a fake engine whose third container reports that it has stopped.
type stopping struct{ *fake.Engine }

func (e stopping) Create(ctx context.Context, s engine.Spec) (engine.Container, error) {
	c, err := e.Engine.Create(ctx, s)
	if err == nil && strings.HasSuffix(s.ID, "-00003") {
		return stopped{c}, nil
	}
	return c, err
}

type stopped struct{ engine.Container }

func (stopped) State(context.Context) (engine.State, error) { return engine.Stopped, nil }

// A container that the kernel kills while the others start fails the trial: its memory is missing.
func TestDensityOfAStoppedContainer(t *testing.T) {
	for name, params := range map[string]bench.Params{
		"density.memory": nil, "density.workload": nil, "density.max": {"mode": "real", "floor": "90"}, "density.churn": nil,
	} {
		_, e, clock := open(t, "fake/a@mem=134217728")
		checkEnd(t, name, runOn(t, name, stopping{e.(*fake.Engine)}, clock, params), result.Failed, "container 3 of")
	}
}

// placed is a fake engine with programs on the host. Without programs it is like bare metal.
type placed struct {
	engine.Engine
	programs []string
	err      error
}

func (e placed) Programs() ([]string, error) { return e.programs, e.err }

// daemonized is an engine with a daemon.
type daemonized struct {
	placed
	daemon engine.Daemon
}

func (e daemonized) Daemon() engine.Daemon { return e.daemon }

// installed executes footprint.install on an engine whose programs have a footprint.
func installed(t *testing.T, e func(engine.Engine) engine.Engine, f footprint.Footprint, err error) result.Trial {
	t.Helper()
	_, base, clock := open(t, "fake/a")
	return runOn(t, "footprint.install", e(base), clock, nil, func(c *runner.Config) {
		c.Footprint = func(programs []string) (footprint.Footprint, error) {
			if len(programs) == 0 {
				return footprint.Footprint{}, nil
			}
			return f, err
		}
	})
}

func TestFootprintInstall(t *testing.T) {
	f := footprint.Footprint{
		Manager: "dpkg", Programs: footprint.Sum{Bytes: 10, Files: 1}, Minimal: footprint.Sum{Bytes: 2_345_678, Packages: 6, Files: 40},
		Recommended: &footprint.Sum{Bytes: 5_000_000}, Added: footprint.Sum{Bytes: 2_000_000},
		Packages:   []footprint.Package{{Name: "a", Bytes: 1_950_000}, {Name: "b", Bytes: 300_000}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}},
		Unpackaged: []string{"/opt/my/tool"}, Notes: []string{"one", "two"},
	}
	usePrograms := func(programs ...string) func(engine.Engine) engine.Engine {
		return func(e engine.Engine) engine.Engine { return placed{Engine: e, programs: programs} }
	}
	t.Run("a runtime", func(t *testing.T) {
		trial := installed(t, usePrograms("/usr/bin/a"), f, nil)
		for name, want := range map[string]float64{
			"AddedBytes": 2e6, "InstallBytes": 2_345_678, "InstallBytesRecommended": 5e6, "BinaryBytes": 10, "Packages": 6, "Files": 40,
		} {
			if got := trial.Values(name); !slices.Equal(got, []float64{want}) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		for name, want := range map[string]string{
			"package manager": "dpkg", "largest packages": "a 1.9 MB, b 0.3 MB, c 0.0 MB, d 0.0 MB, e 0.0 MB and 1 smaller ones",
			"outside packages": "tool", "accuracy": "one; two", "daemon": "none",
		} {
			if got := trial.Conditions[name]; got != want {
				t.Errorf("the condition %s is %q, want %q", name, got, want)
			}
		}
	})
	t.Run("recommended packages are unknown", func(t *testing.T) {
		subset := f
		subset.Recommended = nil
		if trial := installed(t, usePrograms("/usr/bin/a"), subset, nil); trial.Status != result.OK || len(trial.Values("InstallBytesRecommended")) > 0 {
			t.Errorf("the trial is %+v", trial)
		}
	})
	t.Run("bare metal", func(t *testing.T) {
		trial := installed(t, usePrograms(), f, nil)
		if got := trial.Values("AddedBytes"); trial.Status != result.OK || !slices.Equal(got, []float64{0}) {
			t.Errorf("%s with AddedBytes %v, want 0", trial.Status, got)
		}
	})
	t.Run("a daemon of the user's", func(t *testing.T) {
		trial := installed(t, func(e engine.Engine) engine.Engine {
			return daemonized{placed: placed{Engine: e, programs: []string{"/usr/bin/a"}}}
		}, f, nil)
		if trial.Status != result.OK || len(trial.Values("DaemonMemory")) > 0 || !strings.HasPrefix(trial.Conditions["daemon"], "its cost is unknown") {
			t.Errorf("%s with the conditions %q", trial.Status, trial.Conditions)
		}
	})
	for name, tt := range map[string]struct {
		engine func(engine.Engine) engine.Engine
		err    error
		status result.Status
		reason string
	}{
		"no programs on this host": {func(e engine.Engine) engine.Engine { return e }, nil, result.Skipped, "this target has no programs on this host"},
		"unknown programs": {func(e engine.Engine) engine.Engine {
			return placed{Engine: e, err: engine.UnknownPrograms(target.Target{Engine: fake.Name})}
		}, nil, result.Skipped, "the programs of a daemon that Touchstone has not started are unknown"},
		"a locked database": {usePrograms("/a"), &footprint.UnreadableError{Manager: "dpkg", Err: errors.New("it is locked"), Advice: "wait"}, result.Skipped, "the packages of dpkg: it is locked; wait"},
		"a missing library": {usePrograms("/a"), errors.New("no library"), result.Failed, "no library"},
	} {
		checkEnd(t, name, installed(t, tt.engine, f, tt.err), tt.status, tt.reason)
	}
}
