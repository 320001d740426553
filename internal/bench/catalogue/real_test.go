package catalogue_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// The costs of components are the costs of the real processes. Their sum is the kernel's count of all processes.
//
// Invariant cost-components.
func TestRealComponents(t *testing.T) {
	cells.Need(t, "catalogue/monitor")
	for _, tt := range []struct {
		target string
		driver engine.Driver
		cpu    []monitor.Component // in addition to Other
		memory []monitor.Component
	}{
		{"native", native.Driver{}, []monitor.Component{monitor.Container}, []monitor.Component{monitor.Container}},
		{"oci/runc", oci.Driver{}, []monitor.Component{monitor.Runtime, monitor.Container}, []monitor.Component{monitor.Container}},
		{"oci/crun", oci.Driver{}, []monitor.Component{monitor.Runtime, monitor.Container}, []monitor.Component{monitor.Container}},
		{"oci/youki", oci.Driver{}, []monitor.Component{monitor.Runtime, monitor.Container}, []monitor.Component{monitor.Container}},
		{"oci/runsc@platform=systrap", oci.Driver{}, []monitor.Component{monitor.Runtime, monitor.Sentry, monitor.Gofer}, []monitor.Component{monitor.Sentry, monitor.Gofer}},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newProbeHarness(t, tt.target, tt.driver)
			l.needsCgroups(t)
			trials, outcome := l.trials(t, find(t, "operations.container.lifecycle"), nil, 5, byComponent)
			if len(outcome.Caveats) > 0 {
				t.Errorf("the run has the caveats %q", outcome.Caveats)
			}
			for _, trial := range trials {
				if trial.Status != result.OK {
					t.Fatalf("trial %d: %s", trial.Seq, trial.Reason)
				}
				checkComponents(t, trial, tt.cpu, tt.memory)
			}
			if slices.Contains(tt.cpu, monitor.Runtime) && slices.Contains(tt.cpu, monitor.Container) {
				checkIdle(t, trials)
			}
			checkRest(t, trials)
		})
	}
}

// checkIdle checks that the containers of lifecycles, which do nothing, used less CPU time than their runtime. A program of the runtime that is taken
// for the container's would turn this around. The first process of a container is the runtime's until it executes the container's program.
func checkIdle(t *testing.T, trials []result.Trial) {
	t.Helper()
	var container, runtime float64
	for _, trial := range trials {
		container += trial.Values("HostCPUContainer")[0]
		runtime += trial.Values("HostCPURuntime")[0]
	}
	if !(container < runtime) {
		t.Errorf("the containers used %v s of CPU time, and their runtime %v s, although the containers do nothing", container, runtime)
	}
}

// byComponent makes a run know the programs of components.
func byComponent(c *runner.Config) { c.Programs = engines.All(fake.NewClock(), nil).Programs() }

func checkComponents(t *testing.T, trial result.Trial, cpu, memory []monitor.Component) {
	t.Helper()
	one := func(metric string) float64 {
		values := trial.Values(metric)
		if len(values) != 1 {
			t.Errorf("%s is %v, want one value", metric, values)
			return math.NaN()
		}
		return values[0]
	}
	var sum float64
	for _, c := range append(cpu, monitor.Other) {
		seconds := one("HostCPU" + bench.Title(string(c)))
		if !(seconds > 0) {
			t.Errorf("the %s used %v s", c, seconds)
		}
		sum += seconds
	}
	total := one("HostCPU")
	if !(math.Abs(sum-total) < 1e-6) {
		t.Errorf("the components used %v s, all together %v s", sum, total)
	}
	for _, c := range memory {
		if bytes := one("PSS" + bench.Title(string(c))); !(bytes >= 4<<10 && bytes < 1<<30) {
			t.Errorf("the %s has %v bytes", c, bytes)
		}
	}
	count := 0
	for _, s := range trial.Samples {
		if strings.HasPrefix(s.Metric, "HostCPU") || strings.HasPrefix(s.Metric, "PSS") {
			count++
		}
	}
	if want := len(cpu) + 2 + len(memory); count != want {
		t.Errorf("%d costs are known, want %d: %v", count, want, trial.Samples)
	}
}

// checkRest checks that the components have most of the CPU time. The rest is the cost of starting and ending processes, and the time
// since the scheduler's last tick: see docs/adr/0013. A busy host enlarges it at any time, so the best trial counts.
func checkRest(t *testing.T, trials []result.Trial) {
	t.Helper()
	var rests []string
	for _, trial := range trials {
		rest, totals := trial.Values("HostCPUOther"), trial.Values("HostCPU")
		if len(rest) == 1 && len(totals) == 1 && rest[0] < 0.25*totals[0]+0.005 {
			return
		}
		rests = append(rests, fmt.Sprintf("%v s of %v s", rest, totals))
	}
	t.Errorf("in each trial too much CPU time belongs to no component: %q", rests)
}

// streamed is the size of the program's three arrays in bytes.
const streamed = 96 << 20

// A program of 96 MiB shows in the memory of its cgroup and of its component, once and while it runs. The samples take about 1 % of a CPU
// at most.
//
// Invariant sampling-cost.
// Invariant shared-memory.
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
				if limit := 0.01*trial.Elapsed.Seconds() + 0.012; spent > limit {
					return fmt.Errorf("the samples took %.4f s of CPU time, want at most %.4f s", spent, limit)
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
			period := l.At[i]
			if i > 0 {
				period -= l.At[i-1]
			}
			spent += use * period.Seconds()
		}
	}
	return spent
}
