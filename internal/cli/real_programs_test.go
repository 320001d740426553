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

// littleWork are benchmarks with as little work as they accept.
type littleWork struct {
	benchmarks string
	suites     []string // that these are, or parts of them
}

// triedAlone are those that package catalogue runs on bare metal and the runtimes alone (TestRealCPU, TestRealDisk,
// TestRealLimits), and untried the others of the performance and limits suites.
var (
	triedAlone = littleWork{`
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
  - {name: limits.cpu.time, params: {events: 200}}
  - {name: limits.cpu.scaling, params: {events: 1000, steps: 2, percent: 20}}
  - performance.cpu.sevenzip
  - {name: performance.cpu.dav1d, params: {threads: all}}
  - performance.disk.blog
  - limits.memory.oom`, []string{
		"performance.cpu.", "performance.memory.total", "performance.memory.minavglatency", "performance.memory.maxlatency", "performance.disk.", "limits.",
	}}
	untried = littleWork{`
  - {name: performance.database.redis, params: {requests: 1000, duration: 500ms}}
  - performance.memory.stream
  - performance.network
  - performance.syscall`, []string{"performance.database.", "performance.memory.stream", "performance.network.", "performance.syscall."}}
	everything = littleWork{triedAlone.benchmarks + untried.benchmarks, []string{"performance.", "limits."}}
)

// TestRealPrograms runs every benchmark of the performance and limits suites behind containerd, and on bare metal and the
// runtimes alone those that package catalogue does not run there: all of them work. Of several plans beside each other
// some programs wait, or take one CPU, while others work.
func TestRealPrograms(t *testing.T) {
	needRoot(t, "runc", "crun", "runsc", "containerd")
	t.Parallel()
	const limit = 12 * time.Minute
	for _, tt := range []struct {
		name    string
		targets []string
		work    littleWork
	}{
		{"containerd_runsc", []string{"containerd/runsc"}, triedAlone},
		{"containerd_runsc_more", []string{"containerd/runsc"}, untried}, // the slowest target has two plans
		{"containerd_crun", []string{"containerd/crun"}, everything},
		{"alone", []string{"native", "oci/runc", "oci/runsc"}, untried},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan := "version: 1\ntargets: [" + strings.Join(tt.targets, ", ") + "]\nblocks: 1\nwarmup: 0\nbenchmarks:" + tt.work.benchmarks + "\n"
			if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600); err != nil {
				t.Fatal(err)
			}
			p := prepareFor(t, limit, dir, "touchstone", "benchmark", "--managed", "-f", "plan.yaml")
			p.run()
			p.ends(0)
			run := export(t, dir, "latest")
			nothingLeft(t, run.ID)
			if len(run.Targets) != len(tt.targets) {
				t.Fatalf("there are %d targets, want %d", len(run.Targets), len(tt.targets))
			}
			checkTrials(t, run, tt.work.suites)
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
