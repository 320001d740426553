package catalogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// streamed is the size of the program's three arrays in bytes.
const streamed = 96 << 20

// A program of 96 MiB shows in the memory of its cgroup and of its component, once and while it runs. The samples take about 1 % of a CPU
// at most.
func TestRealMemoryOverTime(t *testing.T) {
	cells.Need(t, "catalogue/monitor")
	if testing.Short() {
		t.Skip("measures with real runtimes; -short skips it")
	}
	for _, tt := range []struct {
		target    string
		driver    engine.Driver
		component monitor.Component
	}{
		{"native", native.Driver{}, monitor.Container},
		{"oci/crun", oci.Driver{}, monitor.Container},
		{"oci/runsc@platform=systrap", oci.Driver{}, monitor.Sentry},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newProbeHarness(t, tt.target, tt.driver)
			l.needsCgroups(t)
			monitored := func(c *runner.Config) { c.Work[0].Monitor, c.Proc = bench.MonitorInterval, "/proc" }
			l.calm(t, find(t, "performance.memory.stream").Monitored(), bench.Params{"mib": "32", "duration": "3s"}, func(trial result.Trial) error {
				if err := succeeded(trial); err != nil {
					return err
				}
				if err := checkMemoryOverTime(trial, tt.component); err != nil {
					return err
				}
				spent := monitorTime(trial)
				t.Logf("%d timelines; the samples took %.2f ms of CPU time in %v, %.2f %% of a CPU", len(trial.Timelines), 1e3*spent, trial.Elapsed, 100*spent/trial.Elapsed.Seconds())
				// The first allowance and the unconditional last sample weigh in a trial of few seconds.
				if most := 0.01*trial.Elapsed.Seconds() + 0.012; spent > most {
					return fmt.Errorf("the samples took %.4f s of CPU time, want at most %.4f s", spent, most)
				}
				return nil
			}, byComponent, monitored)
		})
	}
}

// checkMemoryOverTime checks that the arrays of the program show, once.
func checkMemoryOverTime(trial result.Trial, component monitor.Component) error {
	highest := map[string]float64{"the peak above the level before": slices.Max(append(trial.Values(bench.CgroupMemoryPeak), 0))}
	for what, line := range map[string][2]string{
		"the memory of the cgroup":               {"Memory of the cgroups", "trial"},
		"the memory of the component":            {"Memory of the components", string(component)},
		"the peak of the host, above the others": {"Memory of the host", "used"},
	} {
		i := slices.IndexFunc(trial.Timelines, func(l result.Timeline) bool { return l.Group == line[0] && l.Name == line[1] })
		if i < 0 {
			return fmt.Errorf("no timeline %q", line)
		}
		highest[what] = slices.Max(trial.Timelines[i].Values)
	}
	for what, bytes := range highest {
		if bytes < streamed {
			return fmt.Errorf("%s is %.1f MiB, want at least the arrays", what, bytes/(1<<20))
		}
		if bytes > 1.6*streamed && !strings.Contains(what, "host") {
			return fmt.Errorf("%s is %.1f MiB, want the arrays once", what, bytes/(1<<20))
		}
	}
	return nil
}

// monitorTime is the CPU time in seconds that the samples took.
func monitorTime(trial result.Trial) (spent float64) {
	for _, l := range trial.Timelines {
		if l.Name != "memory monitor" {
			continue
		}
		for i, use := range l.Values {
			since := l.At[i]
			if i > 0 {
				since -= l.At[i-1]
			}
			spent += use * since.Seconds()
		}
	}
	return spent
}
