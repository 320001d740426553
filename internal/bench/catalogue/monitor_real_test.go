package catalogue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
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
			s := enginetest.Session(t, oci.LauncherOptions)
			if s.Cgroups == nil {
				t.Skip("needs the right to make cgroups: run as root")
			}
			parsed, err := target.Parse(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			e, err := tt.driver.Open(t.Context(), parsed, s)
			enginetest.Require(t, tt.target, err)
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			b := find(t, "performance.memory.stream").Monitored()
			params, err := b.Resolve(bench.Params{"mib": "32", "duration": "3s"}, false)
			if err != nil {
				t.Fatal(err)
			}
			var trials []result.Trial
			outcome, err := runner.Run(t.Context(), runner.Config{
				RunID: s.RunID, Images: map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: s.Rootfs}}, Data: t.TempDir(),
				Work:    []plan.Work{{Benchmark: b, Params: params, Monitor: bench.MonitorInterval}},
				Targets: []runner.Target{{Name: tt.target, Engine: e}},
				Stop:    stats.StopRule{Min: 1}, TrialLimit: time.Minute, CallLimit: time.Minute, Proc: "/proc",
				Clock: runner.SystemClock{}, Cgroups: s.Cgroups, Programs: engines.All(fake.NewClock(), nil).Programs(), Noise: quiet{}, Observer: quiet{},
				Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
			})
			if err != nil || len(trials) != 1 || trials[0].Status != result.OK {
				t.Fatalf("Run() = %+v, %v with the trials %v", outcome, err, trials)
			}
			trial := trials[0]
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
