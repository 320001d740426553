package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// littleWork is the plan of TestRealPrograms: all benchmarks, with as little work as they accept.
const littleWork = `version: 1
targets: [native, oci/runc, oci/crun, oci/runsc, containerd/runc, containerd/crun, containerd/runsc]
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
`

// TestRealPrograms runs every benchmark of the performance and limits suites on bare metal, on the runtimes alone and
// behind containerd: all of them work there.
func TestRealPrograms(t *testing.T) {
	needRoot(t, "runc", "crun", "runsc", "containerd")
	const limit = 12 * time.Minute
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(littleWork), 0o600); err != nil {
		t.Fatal(err)
	}
	p := prepareFor(t, limit, dir, "touchstone", "benchmark", "--managed", "-f", "plan.yaml")
	p.run()
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Targets) != 7 {
		t.Fatalf("there are %d targets, want 7", len(run.Targets))
	}

	trials := map[result.Cell]result.Trial{}
	for _, trial := range run.Trials {
		trial.Params = ""
		trials[trial.Cell] = trial
	}
	for _, b := range (catalogue.Catalogue{}).All() {
		if b.Suite() != "performance" && b.Suite() != "limits" {
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
