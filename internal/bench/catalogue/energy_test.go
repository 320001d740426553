package catalogue_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
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

// measured executes an energy benchmark on a fake target.
func measured(t *testing.T, name, targetName string, given bench.Params, change func(*runner.Config)) result.Trial {
	t.Helper()
	clock := fake.NewClock()
	parsed, err := target.Parse(targetName)
	if err != nil {
		t.Fatal(err)
	}
	driver := fake.NewDriver(clock)
	install(driver)
	e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: runID})
	if err != nil {
		t.Fatal(err)
	}
	return runOn(t, name, e, clock, given, change)
}

// Ten lifecycles of 100 ms take the idle time of 1 s. The readings are the first one, before and after the idle time, and
// after the work.
func TestEnergyOfLifecycles(t *testing.T) {
	const onTarget = "fake/a@create=60ms,start=10ms,kill=10ms,delete=20ms,exit=0s"
	trial := measured(t, "operations.energy.lifecycle", onTarget, bench.Params{"idle": "1s"}, func(c *runner.Config) {
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
			trial := measured(t, name, "fake/a", nil, tt.change)
			if trial.Status != tt.status || !strings.Contains(trial.Reason, tt.reason) || len(trial.Samples) > 0 {
				t.Errorf("%s with %s: %s because %q, want %s because %q", name, what, trial.Status, trial.Reason, tt.status, tt.reason)
			}
		}
	}
}
