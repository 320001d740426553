package catalogue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

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
		clock := fake.NewClock()
		driver := fake.NewDriver(clock)
		install(driver)
		parsed, err := target.Parse("fake/a@mem=134217728")
		if err != nil {
			t.Fatal(err)
		}
		e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: runID})
		if err != nil {
			t.Fatal(err)
		}
		trial := runOn(t, name, stopping{e.(*fake.Engine)}, clock, params)
		if trial.Status != result.Failed || !strings.Contains(trial.Reason, "container 3 of") || len(trial.Samples) > 0 {
			t.Errorf("%s: %s because %s", name, trial.Status, trial.Reason)
		}
	}
}
