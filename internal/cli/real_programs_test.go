package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// littleWork are the plans of TestRealPrograms, with as little work as the benchmarks accept.
var littleWork = []struct {
	name, plan string
	targets    int
	suites     []string // or parts of them
}{
	{"containerd", `version: 1
targets: [containerd/crun, containerd/runsc]
blocks: 1
warmup: 0
benchmarks:
  - {name: performance.cpu.time, params: {events: 100}}
  - {name: performance.cpu.linpack, params: {n: 500, runs: 1}}
  - {name: performance.memory.total, params: {mib: 1024}}
  - {name: performance.memory.minavglatency, params: {mib: 1024}}
  - {name: performance.memory.maxlatency, params: {mib: 1024}}
  - {name: performance.disk.read, params: {files: 4, mib: 2, requests: 200}}
  - {name: performance.disk.write, params: {files: 4, mib: 2, requests: 200}}
  - {name: performance.disk.mount, params: {files: 4, mib: 2}}
  - {name: performance.disk.throughput, params: {mib: 32, duration: 100ms}}
  - {name: performance.disk.sqlite, params: {insertions: 50}}
  - {name: performance.database.redis, params: {requests: 1000, duration: 500ms}}
  - {name: limits.cpu.time, params: {events: 200}}
  - {name: limits.cpu.scaling, params: {events: 1000, steps: 2, percent: 20}}
  - {name: performance.cpu.sevenzip, params: {step: 100ms}}
  - {name: performance.cpu.dav1d, params: {threads: all}}
  - performance.memory.stream
  - performance.disk.blog
  - performance.network
  - performance.syscall
  - limits.memory.oom
`, 2, []string{"performance.", "limits."}},
	{"alone", `version: 1
targets: [native, oci/runc, oci/runsc]
blocks: 1
warmup: 0
benchmarks:
  - {name: performance.database.redis, params: {requests: 1000, duration: 500ms}}
  - performance.memory.stream
  - performance.network
  - performance.syscall
`, 3, []string{"performance.database.", "performance.memory.stream", "performance.network.", "performance.syscall."}},
}

// TestRealPrograms runs every benchmark of the performance and limits suites behind containerd, and on bare metal and the
// runtimes alone those that package catalogue does not run there (TestRealCPU, TestRealDisk, TestRealLimits): all of them
// work.
func TestRealPrograms(t *testing.T) {
	needRoot(t, "runc", "crun", "runsc", "containerd")
	const limit = 12 * time.Minute
	for _, work := range littleWork {
		t.Run(work.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(work.plan), 0o600); err != nil {
				t.Fatal(err)
			}
			p := prepareFor(t, limit, dir, "touchstone", "benchmark", "--managed", "-f", "plan.yaml")
			p.run()
			p.ends(0)
			run := export(t, dir, "latest")
			nothingLeft(t, run.ID)
			if len(run.Targets) != work.targets {
				t.Fatalf("there are %d targets, want %d", len(run.Targets), work.targets)
			}
			checkTrials(t, run, work.suites)
		})
	}
}

// checkTrials checks that all benchmarks of some suites, or parts of them, have worked on all targets of a run.
func checkTrials(t *testing.T, run result.Run, suites []string) {
	t.Helper()
	trials := map[result.Cell]result.Trial{}
	for _, trial := range run.Trials {
		trial.Params = ""
		trials[trial.Cell] = trial
	}
	for _, b := range (catalogue.Catalogue{}).All() {
		if !slices.ContainsFunc(suites, func(suite string) bool { return strings.HasPrefix(b.Name, suite) }) {
			continue
		}
		for _, target := range run.Targets {
			trial, ok := trials[result.Cell{Benchmark: b.Name, Target: target.Name}]
			switch {
			case !ok:
				t.Errorf("%s on %s: there is no trial", b.Name, target.Name)
			case trial.Status != result.OK:
				t.Errorf("%s on %s: %s because %s\n%s", b.Name, target.Name, trial.Status, trial.Reason, trial.Output)
			default:
				checkMetrics(t, b, trial)
			}
		}
	}
}

// checkMetrics checks that a trial has what its benchmark promises.
func checkMetrics(t *testing.T, b bench.Benchmark, trial result.Trial) {
	t.Helper()
	for _, m := range b.Metrics {
		values := trial.Values(m.Name)
		if len(values) == 0 && !m.Optional {
			t.Errorf("%s on %s has no %s", b.Name, trial.Target, m.Name)
		}
		if slices.ContainsFunc(values, func(v float64) bool { return v < 0 }) {
			t.Errorf("%s on %s: %s is %v", b.Name, trial.Target, m.Name, values)
		}
	}
}
