package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
	"github.com/touchstone-bench/touchstone/internal/trace"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
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

// The disk benchmarks work on bare metal and in containers, on every volume. TestRealPrograms of package cli runs them behind an
// engine.
func TestRealDisk(t *testing.T) {
	cells.Need(t, "catalogue/disk")
	volumes := bench.Volumes() // reading and writing test each, the other benchmarks one
	cases := []struct {
		name    string
		volumes []bench.Volume
		given   bench.Params
	}{
		{"performance.disk.read", volumes, bench.Params{"files": "4", "mib": "2", "requests": "500"}},
		{"performance.disk.read", []bench.Volume{bench.Rootfs, bench.Bind}, bench.Params{"files": "4", "mib": "2", "requests": "500", "cache": "cold"}},
		{"performance.disk.write", volumes, bench.Params{"files": "4", "mib": "2", "requests": "500", "fsync": "every=100"}},
		{"performance.disk.write", []bench.Volume{bench.Rootfs, bench.Bind}, bench.Params{"files": "4", "mib": "2", "requests": "500", "fsync": "never", "existing": "empty"}},
		{"performance.disk.throughput", []bench.Volume{bench.Rootfs}, bench.Params{"mib": "16", "duration": "300ms", "sweep": "4,16384"}},
		{"performance.disk.throughput", []bench.Volume{bench.Bind}, bench.Params{"mib": "16", "duration": "300ms", "sweep": "64,1024", "cache": "cold"}},
		{"performance.disk.sqlite", []bench.Volume{bench.Bind}, bench.Params{"insertions": "20"}},
		{"performance.disk.blog", []bench.Volume{bench.Tmpfs}, bench.Params{"duration": "300ms"}},
		{"performance.disk.blog", []bench.Volume{bench.Bind}, bench.Params{"duration": "5s", "mixture": "blogbench"}},
	}
	for _, tt := range []struct {
		target string
		driver engine.Driver
		direct result.Status // of direct I/O on a bind mount
	}{
		{"native", native.Driver{}, result.OK},
		{"oci/runc", oci.Driver{}, result.OK},
		{"oci/runsc@platform=systrap", oci.Driver{}, result.Skipped},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.target, tt.driver)
			for _, s := range cases {
				for _, volume := range s.volumes {
					overrides := bench.Params{"on": string(volume)}
					for name, value := range s.given {
						overrides[name] = value
					}
					trial := l.retry(t, s.name, overrides)
					if trial.Status != result.OK {
						t.Errorf("%s with %v: %s because %s: %s", s.name, overrides, trial.Status, trial.Reason, trial.Output)
					}
				}
			}
			if trial := l.run(t, "performance.disk.mount", bench.Params{"files": "2", "mib": "2"}); trial.Status != result.OK || len(trial.Samples) != 4 {
				t.Errorf("performance.disk.mount: %s because %s: %v, %v", trial.Status, trial.Reason, trial.Samples, trial.Conditions)
			}
			trial := l.retry(t, "performance.disk.throughput", bench.Params{"mib": "4", "duration": "300ms", "direct": "1"})
			if trial.Status != tt.direct {
				t.Errorf("direct I/O: %s because %s: %s", trial.Status, trial.Reason, trial.Output)
			}
		})
	}
}

// dropFiles writes the trials' files on disk back, and drops them from the page cache.
func dropFiles(data string) error {
	dirs, err := filepath.Glob(filepath.Join(data, "t[0-9]*"))
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		}))
	}
	return err
}

// memoryDir makes a directory in memory.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "touchstone-test-") //nolint:usetesting // t.TempDir is on disk
	must.Do(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// The network benchmarks work over the networks of real engines. TestRealPrograms of package cli runs them between containers
// and the host, and behind containerd.
func TestRealNetwork(t *testing.T) {
	cells.Need(t, "catalogue/network")
	containerPeer, hostPeer := bench.Params{"peer": "containers"}, bench.Params{"peer": "host"}
	fewRequests := bench.Params{"requests": "1000", "clients": "10"}
	samePeer := bench.Params{"requests": "1000", "clients": "10", "peer": "same", "persistence": "snapshots"}
	for _, tt := range []struct {
		target string
		driver engine.Driver
		work   map[string]bench.Params
	}{
		{"native", native.Driver{}, map[string]bench.Params{networkHTTP: containerPeer, isolationNetwork: briefly(nil), databaseRedis: samePeer}},
		{"native@network=loopback", native.Driver{}, map[string]bench.Params{networkBandwidth: hostPeer, databaseRedis: fewRequests}},
		{"oci/runc", oci.Driver{}, map[string]bench.Params{networkHTTP: containerPeer, databaseRedis: samePeer}},
		{"oci/runsc@platform=systrap", oci.Driver{}, map[string]bench.Params{networkBandwidth: containerPeer, isolationNetwork: briefly(containerPeer)}},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.target, tt.driver).withHost(t)
			enginetest.Require(t, tt.target, l.engine.Supports(engine.NetworkBridge))
			for name, overrides := range tt.work {
				b := find(t, name)
				l.calm(t, b, overrides, checkNetwork(b))
			}
		})
	}
}

// checkNetwork returns the check that a trial has all metrics and conditions of its benchmark.
func checkNetwork(b bench.Benchmark) func(result.Trial) error {
	return func(trial result.Trial) error {
		if err := succeeded(trial); err != nil {
			return err
		}
		for _, m := range b.Metrics {
			values := trial.Values(m.Name)
			if !m.Optional && m.DerivedFrom == "" && (len(values) == 0 || slices.Min(values) <= 0) {
				return fmt.Errorf("%s is %v", m.Name, values)
			}
		}
		for _, condition := range []string{"interface", "server", "client"} {
			if trial.Conditions[condition] == "" {
				return fmt.Errorf("the condition %s is missing: %v", condition, trial.Conditions)
			}
		}
		return nil
	}
}

// briefly returns parameters with short phases, and with one CPU for each party: on a busy host, threads that wait for each other make
// little progress.
func briefly(overrides bench.Params) bench.Params {
	params := bench.Params{"before": "300ms", "during": "1s", "after": "200ms", "cpus": "1"}
	maps.Copy(params, overrides)
	return params
}

// Victims and aggressors work on bare metal and in containers. A limit that kills the victim fails the trial, and a fork bomb
// runs only where its limit is proved.
func TestRealIsolation(t *testing.T) {
	cells.Need(t, "catalogue/isolation")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.name, tt.driver)
			l.needsCgroups(t)
			params := bench.Params{"n": "200", "noise": "400"}
			l.calm(t, find(t, isolationCPU), briefly(params), checkIsolation)
			if tt.name == "native" {
				l.host = l.engine
				params["aggressor"] = "native"
				l.calm(t, find(t, isolationCPU), briefly(params), func(trial result.Trial) error {
					if got := trial.Conditions["aggressor"]; !strings.Contains(got, "a process of the host") {
						return fmt.Errorf("the aggressor is %q", got)
					}
					return checkIsolation(trial)
				})
			}
			trial := l.run(t, isolationCPU, briefly(bench.Params{"n": "6000", "memory": "128"}))
			if trial.Status != result.Failed || !strings.Contains(trial.Reason, "set a higher limit") {
				t.Errorf("a victim that exceeds its memory: %s because %s", trial.Status, trial.Reason)
			}
			l.calm(t, find(t, isolationPIDs), briefly(bench.Params{"limit": "64", "before": "1s", "during": "1500ms"}), func(trial result.Trial) error {
				if tt.name != "native" && trial.Status == result.Skipped && strings.Contains(trial.Reason, "no fork bomb runs without one") {
					return nil
				}
				return checkIsolation(trial)
			})
		})
	}
}

// checkIsolation is the error of a trial that lacks a value.
func checkIsolation(trial result.Trial) error {
	if err := succeeded(trial); err != nil {
		return err
	}
	for _, metric := range []string{"Kept", "SpeedBefore", "SpeedDuring", "SpeedAfter", "TailBefore", "TailDuring", "TailAfter", "TailControl"} {
		if got := trial.Values(metric); len(got) != 1 || !(got[0] > 0) {
			return fmt.Errorf("%s is %v", metric, got)
		}
	}
	if len(trial.Timelines) < 3 {
		return fmt.Errorf("there are %d timelines", len(trial.Timelines))
	}
	return nil
}

// Each benchmark of the suite keeps all samples of a real target: their number, and the largest ones.
func TestRealLatency(t *testing.T) {
	cells.Need(t, "catalogue/latency")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newProbeHarness(t, tt.name, tt.driver)
			for _, name := range []string{"latency.exec", "latency.start", "latency.syscall"} {
				b := find(t, name)
				l.calm(t, b, bench.Params{"samples": "40"}, func(trial result.Trial) error {
					if err := succeeded(trial); err != nil {
						return err
					}
					if len(trial.Distributions) != 1 {
						return fmt.Errorf("%s has %d distributions", name, len(trial.Distributions))
					}
					d := trial.Distributions[0]
					var count uint64
					for _, n := range d.Counts {
						count += n
					}
					if count != 40 || len(d.Tail.Values) != 40 {
						return fmt.Errorf("%s has %d samples and a tail of %d, want 40 of each", name, count, len(d.Tail.Values))
					}
					middle, maxima := trial.Values(d.Metric), trial.Values(d.Metric+"Max")
					if len(middle) != 1 || len(maxima) != 1 || !(middle[0] > 0) || maxima[0] != slices.Max(d.Tail.Values) || maxima[0] < middle[0] {
						return fmt.Errorf("%s has the median %v and the maximum %v", name, middle, maxima)
					}
					return nil
				})
			}
		})
	}
}

// checkReached checks the system calls of the host that the programs of surface.calls reach. Without a sandbox they are the programs' own calls. A sandbox
// keeps the network inside of it, and reaches no more calls than its filters allow.
func checkReached(t *testing.T, l *realHarness, isSandbox bool, limits []float64) {
	t.Helper()
	if err := trace.Check(); err != nil {
		record.Skip(t, "no traces: "+err.Error())
	}
	var traces []result.Trace
	trials, _ := l.trials(t, find(t, "surface.calls"), nil, 1, byComponent, func(c *runner.Config) {
		c.Tracing.Start = func(target monitor.Target) (runner.Tracer, error) { return trace.Start(target) }
		c.Tracing.Record = func(t result.Trace) error {
			traces = append(traces, t)
			return nil
		}
	})
	trial := mustBeOK(t, trials[0])
	if len(traces) != 1 {
		t.Fatalf("the run keeps %d traces", len(traces))
	}
	steps := map[string]map[string]int64{}
	for _, c := range traces[0].Counts {
		if steps[c.Step] == nil {
			steps[c.Step] = map[string]int64{}
		}
		maps.Copy(steps[c.Step], c.Calls)
	}
	count := sample(t, trial, "HostCallsReached")
	if isSandbox {
		if _, hasConnect := steps["network"]["connect"]; hasConnect || steps["files"]["futex"] == 0 || count > limits[0] {
			t.Errorf("the sandbox reaches %v of %v allowed calls: %v", count, limits, steps)
		}
		return
	}
	expect.Equal(t, "the calls for memory", map[string]int64{"exit_group": 1, "mmap": 1, "write": 9}, steps["memory"])
	if steps["network"]["connect"] == 0 || steps["processes"]["execve"] != 4 || steps["files"]["renameat2"] == 0 || count < 20 || count > 40 {
		t.Errorf("the programs reach %v calls: %v", count, steps)
	}
}

// A real container has the rights of its configuration, real kernels refuse the drills, and the control on the host shows which refusals are the
// container's.
func TestRealSurface(t *testing.T) {
	cells.Need(t, "catalogue/surface")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newProbeHarness(t, tt.name, tt.driver).withHost(t)
			l.needsCgroups(t) // root: a user's control has few rights itself
			rights := mustBeOK(t, l.run(t, "surface.rights", nil))
			if got, want := rights.Conditions["capabilities"], "10: chown dac_override fowner fsetid kill net_bind_service setgid setpcap setuid sys_chroot"; got != want {
				t.Errorf("capabilities %q, want %q", got, want)
			}
			if got := rights.Conditions["can gain rights"]; got != "no (no_new_privs is 1)" {
				t.Errorf("can gain rights: %q", got)
			}
			if v := rights.Values("VisibleProcesses"); len(v) != 1 || v[0] != 1 {
				t.Errorf("it sees %v processes, want itself alone", v)
			}
			if text := rights.Conditions["devices"]; !strings.Contains(text, "/dev/null") || strings.Contains(text, "/dev/vd") || strings.Contains(text, "/dev/mem") {
				t.Errorf("devices %q", text)
			}
			drills := mustBeOK(t, l.run(t, "surface.drills", nil))
			for _, name := range []string{"mount", "raw socket", "packet socket", "mount namespace"} {
				if got := drills.Conditions[name]; got != "refused: EPERM (1)" {
					t.Errorf("%s: %q, want a refusal that the control shows", name, got)
				}
			}
			trials, _ := l.trials(t, find(t, "surface.filters"), nil, 1, byComponent)
			filters := mustBeOK(t, trials[0])
			calls, total := filters.Values("HostCalls"), float64(len(syscalls.Numbers()))
			isSandbox := l.engine.Info().Isolation == engine.UserKernel
			if len(calls) != 1 || isSandbox && (calls[0] < 20 || calls[0] > total/2) || !isSandbox && calls[0] != total {
				t.Errorf("%v of %v system calls are allowed on the host: %v", calls, total, filters.Conditions)
			}
			checkReached(t, l, isSandbox, calls)
		})
	}
}
