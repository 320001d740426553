package catalogue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// realTargets are the targets for tests of the image's programs: one for each kernel. TestRealDisk adds oci/runc.
var realTargets = []struct {
	name   string
	driver engine.Driver
}{
	{"native", native.Driver{}},
	{"oci/crun", oci.Driver{}},
	{"oci/runsc@platform=systrap", oci.Driver{}},
}

// shortParams has parameters that shorten benchmarks whose quick values take long.
var shortParams = map[string]bench.Params{
	"performance.cpu.time":             {"events": "100"},
	"performance.cpu.sevenzip":         {"step": "100ms", "threads": "all", "passes": "2"},
	"performance.cpu.dav1d":            {"threads": "all"},
	"performance.cpu.linpack":          {"n": "500", "threads": "all"},
	"performance.memory.total":         {"mib": "256"},
	"performance.memory.minavglatency": {"mib": "256", "threads": "2", "scope": "local"},
	"performance.memory.maxlatency":    {"mib": "256", "operation": "read", "access": "rnd", "kib": "64"},
}

// Each CPU and memory benchmark of the workload image works on bare metal and in containers. TestRealPrograms of package cli
// runs them behind an engine.
func TestRealCPU(t *testing.T) {
	cells.Need(t, "catalogue/cpu")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.name, tt.driver)
			for _, b := range (catalogue.Catalogue{}).All() {
				if b.Image != bench.WorkloadImage || !bench.Matches("performance.cpu", b.Name) && !bench.Matches("performance.memory", b.Name) {
					continue
				}
				l.calm(t, b, shortParams[b.Name], func(trial result.Trial) error {
					if err := succeeded(trial); err != nil {
						return err
					}
					for _, m := range b.Metrics {
						if v := trial.Values(m.Name); len(v) != 1 && !m.Series || len(v) == 0 || !(slices.Min(v) > 0) {
							return fmt.Errorf("%s is %v", m.Name, v)
						}
					}
					return nil
				})
			}
		})
	}
}

// Limits hold on targets that are known to enforce them, and the usage is the host's count.
func TestRealLimits(t *testing.T) {
	cells.Need(t, "catalogue/limits")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.name, tt.driver)
			if l.session.Cgroups == nil {
				t.Skip("needs the right to make cgroups: run as root")
			}
			for name, params := range map[string]bench.Params{
				"limits.cpu.time":    {"events": "200"},
				"limits.cpu.scaling": {"events": "1000", "steps": "2", "percent": "20"}, // few enough for a busy host
				"limits.memory.oom":  nil,
			} {
				b := find(t, name)
				l.calm(t, b, params, checkLimits(b))
			}
		})
	}
}

// checkLimits returns the check that a trial has the metrics of its benchmark, and that the limit holds.
func checkLimits(b bench.Benchmark) func(result.Trial) error {
	return func(trial result.Trial) error {
		if err := succeeded(trial); err != nil {
			return err
		}
		for _, m := range b.Metrics {
			if m.Name == "HostLimitUse" { // of virtual machines, which are not among the targets
				continue
			}
			values := trial.Values(m.Name)
			if len(values) == 0 && m.Name != "KillTime" && m.Name != "LimitResponse" { // these may be unknown on a busy host
				return fmt.Errorf("%s is missing", m.Name)
			}
			for _, v := range values {
				if !(v > 0) || m.Bound.Broken != "" && v > m.Bound.Most {
					return fmt.Errorf("%s is %v", m.Name, v)
				}
			}
		}
		return nil
	}
}

// An accepted but ignored limit is detected.
func TestRealLimitIgnored(t *testing.T) {
	cells.Need(t, "catalogue/limits")
	l := newRealHarness(t, "native", native.Driver{})
	l.engine = updating{l.engine.(*native.Engine), func(context.Context, engine.Updater, engine.Resources) error { return nil }}
	l.calm(t, find(t, "limits.cpu.scaling"), bench.Params{"events": "600", "steps": "2", "percent": "20"}, func(trial result.Trial) error {
		if got := trial.Values("LimitResponse"); len(got) != 1 || got[0] < 1.4 || got[0] > 3 {
			return fmt.Errorf("LimitResponse = %v of an engine that ignores updates", got)
		}
		return nil
	})
}

// Without a limit the program exceeds the bound by far.
func TestRealNoLimit(t *testing.T) {
	cells.Need(t, "catalogue/limits")
	l := newRealHarness(t, "native", native.Driver{})
	l.engine = unlimited{l.engine.(*native.Engine)}
	// The use is unknown if most is done before the first output arrives.
	l.calm(t, find(t, "limits.cpu.time"), bench.Params{"events": "1000"}, func(trial result.Trial) error {
		if got := trial.Values("CPULimitUse"); len(got) != 1 || got[0] < 2 || got[0] > 11 {
			return fmt.Errorf("CPULimitUse = %v with a limit of a tenth that was not set", got)
		}
		return nil
	})
	trial := l.run(t, "limits.memory.oom", bench.Params{"mib": "16"})
	if got := sample(t, trial, "Reached"); got != 2 || len(trial.Values("Usable")) > 0 {
		t.Errorf("Reached = %v with a limit that was not set: %v", got, trial.Samples)
	}
}

// unlimited is native without limits.
type unlimited struct{ *native.Engine }

func (e unlimited) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	spec.Resources = engine.Resources{}
	return e.Engine.Create(ctx, spec)
}

// updating is native with other updates, which may use native's own.
type updating struct {
	*native.Engine
	update func(ctx context.Context, own engine.Updater, r engine.Resources) error
}

func (e updating) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	c, err := e.Engine.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return updatedContainer{c, e}, nil
}

type updatedContainer struct {
	engine.Container
	engine updating
}

func (c updatedContainer) Update(ctx context.Context, r engine.Resources) error {
	return c.engine.update(ctx, c.Container.(engine.Updater), r)
}
