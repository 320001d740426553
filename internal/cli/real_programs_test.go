package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestRealPrograms runs every benchmark of the performance and limits suites on bare metal, on the runtimes alone and
// behind containerd: all of them work there.
func TestRealPrograms(t *testing.T) {
	needRoot(t, "runc", "crun", "runsc", "containerd")
	const limit = 12 * time.Minute
	targets := []string{"native", "oci/runc", "oci/crun", "oci/runsc", "containerd/runc", "containerd/crun", "containerd/runsc"}
	dir := t.TempDir()
	p := prepareFor(t, limit, dir, "touchstone", "benchmark", "--managed", "--targets", strings.Join(targets, ","),
		"--filter", "performance,limits", "--runs", "1", "--warmup", "0")
	p.run()
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)

	trials := map[result.Cell]result.Trial{}
	for _, trial := range run.Trials {
		trial.Params = ""
		trials[trial.Cell] = trial
	}
	for _, b := range (catalogue.Catalogue{}).All() {
		if b.Suite() != "performance" && b.Suite() != "limits" {
			continue
		}
		for _, target := range targets {
			trial, ok := trials[result.Cell{Benchmark: b.Name, Target: target}]
			switch {
			case !ok:
				t.Errorf("%s on %s: there is no trial", b.Name, target)
			case trial.Status != result.OK:
				t.Errorf("%s on %s: %s because %s\n%s", b.Name, target, trial.Status, trial.Reason, trial.Output)
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
