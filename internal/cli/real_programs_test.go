package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
)

// shortBenchmarks are plan entries of benchmarks whose quick values take long.
var shortBenchmarks = map[string]bench.Params{
	"performance.cpu.time":             {"events": "100"},
	"performance.cpu.linpack":          {"n": "500", "runs": "1"},
	"performance.cpu.dav1d":            {"threads": "all"},
	"performance.memory.total":         {"mib": "1024"},
	"performance.memory.minavglatency": {"mib": "1024"},
	"performance.memory.maxlatency":    {"mib": "1024"},
	"performance.disk.read":            {"files": "4", "mib": "2", "requests": "200"},
	"performance.disk.write":           {"files": "4", "mib": "2", "requests": "200"},
	"performance.disk.mount":           {"files": "4", "mib": "2"},
	"performance.disk.throughput":      {"mib": "32", "duration": "500ms"},
	"performance.disk.sqlite":          {"insertions": "50"},
	"performance.database.redis":       {"requests": "1000", "duration": "500ms"},
	"limits.cpu.time":                  {"events": "200"},
	"limits.cpu.scaling":               {"events": "1000", "steps": "2", "percent": "20"},
}

// triedAlone reports whether package catalogue runs the benchmark on bare metal and on the runtimes alone (TestRealCPU,
// TestRealDisk, TestRealLimits).
func triedAlone(b bench.Benchmark) bool {
	return bench.Matches("performance.cpu", b.Name) || bench.Matches("performance.disk", b.Name) || bench.Matches("limits", b.Name) ||
		bench.Matches("performance.memory", b.Name) && b.Image == bench.WorkloadImage
}

// realPrograms returns the benchmarks of the performance and limits suites that are selected.
func realPrograms(match func(bench.Benchmark) bool) []bench.Benchmark {
	return slices.DeleteFunc((catalogue.Catalogue{}).All(), func(b bench.Benchmark) bool {
		suite := b.Suite()
		return suite != "performance" && suite != "limits" || !match(b)
	})
}

// longest is the factor of the durations of programs that had no result on a busy host.
const longest = 8

// shortPlan is the text of a plan with benchmarks. Their durations are multiplied by a factor.
func shortPlan(t *testing.T, targets []string, benchmarks []bench.Benchmark, factor int) string {
	t.Helper()
	text := "version: 1\ntargets: [" + strings.Join(targets, ", ") + "]\nblocks: 1\nwarmup: 0\ntimeout: {trial: 5m, call: 5m}\nbenchmarks:"
	for _, b := range benchmarks {
		params, err := b.Resolve(shortBenchmarks[b.Name], false)
		must.Do(t, err)
		var entries []string
		for name, value := range shortBenchmarks[b.Name] {
			if name != "duration" {
				entries = append(entries, name+": "+value)
			}
		}
		if length, err := time.ParseDuration(params["duration"]); err == nil {
			entries = append(entries, "duration: "+(time.Duration(factor)*length).String())
		}
		text += "\n  - {name: " + b.Name + ", params: {" + strings.Join(entries, ", ") + "}}"
	}
	return text + "\n"
}

// TestRealPrograms runs every benchmark of the performance and limits suites behind containerd. On bare metal and on the
// runtimes alone it runs the benchmarks that package catalogue does not run there. The plans run at the same time, because
// some programs wait or use one CPU only. A host that is busy at the wrong time spoils a trial, as by a lost packet, or gives a program no CPU
// time within its duration: benchmarks that fail run once more, for longer. The reasons are recorded.
func TestRealPrograms(t *testing.T) {
	cells.Need(t, "cli/programs")
	needRoot(t, "runc", "crun", "runsc", "containerd")
	t.Parallel()
	const limit = 25 * time.Minute // against hanging
	for _, tt := range []struct {
		name     string
		targets  []string
		selected func(bench.Benchmark) bool
	}{
		{"containerd_runsc", []string{"containerd/runsc"}, triedAlone},
		{"containerd_runsc_more", []string{"containerd/runsc"}, func(b bench.Benchmark) bool { return !triedAlone(b) }}, // the slowest target has two plans
		{"containerd_crun", []string{"containerd/crun"}, func(bench.Benchmark) bool { return true }},
		{"alone", []string{"native", "oci/runc", "oci/runsc"}, func(b bench.Benchmark) bool { return !triedAlone(b) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			failed, reasons := runPrograms(t, limit, dir, tt.targets, realPrograms(tt.selected), 1)
			if len(failed) == 0 {
				return
			}
			record.Repeat(t, strings.Join(reasons, "; "))
			if repeats, reasons := runPrograms(t, limit, dir, tt.targets, failed, longest); len(repeats) > 0 {
				t.Errorf("these benchmarks failed twice: %q", reasons)
			}
		})
	}
}

// runPrograms runs benchmarks on targets, checks the trials, and returns the benchmarks with a failed trial, and their reasons.
func runPrograms(t *testing.T, limit time.Duration, dir string, targets []string, benchmarks []bench.Benchmark, factor int) (failed []bench.Benchmark, reasons []string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(shortPlan(t, targets, benchmarks, factor)), 0o600))
	p := prepareFor(t, limit, dir, "touchstone", "benchmark", "--managed", "-f", "plan.yaml")
	p.run()
	p.ends(0, 3)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Targets) != len(targets) {
		t.Fatalf("there are %d targets, want %d", len(run.Targets), len(targets))
	}
	var worked []bench.Benchmark
	for _, b := range benchmarks {
		i := slices.IndexFunc(run.Trials, func(trial result.Trial) bool {
			isBusy := trial.Status == result.Skipped && strings.Contains(trial.Reason, runtimes.ErrNoAnswer.Error())
			return trial.Benchmark == b.Name && (trial.Status == result.Failed || trial.Status == result.Timeout || isBusy)
		})
		if i < 0 {
			worked = append(worked, b)
			continue
		}
		failed = append(failed, b)
		reasons = append(reasons, fmt.Sprintf("%s on %s: %s because %s", b.Name, run.Trials[i].Target, run.Trials[i].Status, run.Trials[i].Reason))
		t.Logf("%s\n%s", reasons[len(reasons)-1], run.Trials[i].Output)
	}
	checkTrials(t, run, worked)
	return failed, reasons
}

// checkTrials checks that benchmarks have worked on all targets of a run.
func checkTrials(t *testing.T, run result.Run, benchmarks []bench.Benchmark) {
	t.Helper()
	trials := map[result.Cell]result.Trial{}
	for _, trial := range run.Trials {
		trial.Params = ""
		trials[trial.Cell] = trial
	}
	for _, b := range benchmarks {
		for _, target := range run.Targets {
			trial, ok := trials[result.Cell{Benchmark: b.Name, Target: target.Name}]
			switch {
			case !ok:
				t.Errorf("%s on %s: no trial", b.Name, target.Name)
			case trial.Status == result.Skipped && needsEnergy(b) && strings.HasPrefix(trial.Reason, "energy: "):
				// Most virtual machines have no gauge of energy.
			case trial.Status != result.OK:
				t.Errorf("%s on %s: %s because %s\n%s", b.Name, target.Name, trial.Status, trial.Reason, trial.Output)
			default:
				checkMetrics(t, b, trial)
			}
		}
	}
}

// needsEnergy reports whether a benchmark reads the gauge of the host's energy.
func needsEnergy(b bench.Benchmark) bool {
	params, err := b.Resolve(nil, false)
	return err == nil && b.Needs != nil && b.Needs(params).Energy
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
