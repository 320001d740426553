package catalogue_test

import (
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
)

// A program of 96 MiB shows in the memory of its cgroup and of its component, once and while it runs. The samples take about 1 % of a CPU
// at most.
func TestRealMemoryOverTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures with real runtimes; -short skips it")
	}
	const arrays, mib = 96, 1 << 20
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
			trials, outcome := l.trials(t, find(t, "performance.memory.stream").Monitored(), bench.Params{"mib": "32", "duration": "3s"}, 1, byComponent, func(c *runner.Config) {
				c.Work[0].Monitor, c.Proc = bench.MonitorInterval, "/proc"
			})
			trial := trials[0]
			if trial.Status != result.OK {
				t.Fatalf("%s because %s", trial.Status, trial.Reason)
			}
			highest := func(group, name string) float64 {
				i := slices.IndexFunc(trial.Timelines, func(l result.Timeline) bool { return l.Group == group && l.Name == name })
				if i < 0 {
					t.Fatalf("no timeline %s of %q; caveats: %q", name, group, outcome.Caveats)
				}
				return slices.Max(trial.Timelines[i].Values)
			}
			for what, bytes := range map[string]float64{
				"the memory of the cgroup":               highest("Memory of the cgroups", "trial"),
				"the memory of the component":            highest("Memory of the components", string(tt.component)),
				"the peak above the level before":        trial.Values(bench.CgroupMemoryPeak)[0],
				"the peak of the host, above the others": highest("Memory of the host", "used"),
			} {
				if bytes < arrays*mib {
					t.Errorf("%s is %.1f MiB, want at least the arrays", what, bytes/mib)
				}
				if most := 1.6 * arrays * mib; bytes > most && !strings.Contains(what, "host") {
					t.Errorf("%s is %.1f MiB, want the arrays once", what, bytes/mib)
				}
			}
			var spent float64
			for _, l := range trial.Timelines {
				if l.Name == "memory monitor" {
					for i, use := range l.Values {
						since := l.At[i]
						if i > 0 {
							since -= l.At[i-1]
						}
						spent += use * since.Seconds()
					}
				}
			}
			t.Logf("%d timelines; the samples took %.2f ms of CPU time in %v, %.2f %% of a CPU", len(trial.Timelines), 1e3*spent, trial.Elapsed, 100*spent/trial.Elapsed.Seconds())
			// The first allowance and the unconditional last sample weigh in a trial of few seconds.
			if most := 0.01*trial.Elapsed.Seconds() + 0.012; spent > most {
				t.Errorf("the samples took %.4f s of CPU time, want at most %.4f s", spent, most)
			}
		})
	}
}
