package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// ownImage is a plan with two custom workloads in an image beside the plan. One is the probe, and the program of the other one
// is not in the image.
const ownImage = `version: 1
targets: [native, oci/runc, containerd/runc]
blocks: 1
warmup: 0
benchmarks: [app]
engines: {managed: true}
workloads:
  - name: app.calls.mix
    image: mine.tar
    argv: [/probe, syscall, --ms, 50, --copies, 1]
    parse:
      - {metric: Rate, regex: '"LoopsPerSecond","value":([0-9.]+),', unit: 1/s, better: higher}
  - name: app.calls.none
    image: mine.tar
    argv: [/usr/bin/none]
    parse: [{metric: Rate, json: rate, unit: 1/s, better: higher}]
`

// TestRealOwnImage runs a program of an image that the plan names by its file.
func TestRealOwnImage(t *testing.T) {
	cells.Need(t, "cli/own")
	needRoot(t, "runc", "containerd")
	t.Parallel()
	dir := t.TempDir()
	product, err := image.Build(runtime.GOARCH)
	must.Do(t, err)
	archive, err := os.Create(filepath.Join(dir, "mine.tar"))
	must.Do(t, err)
	err = errors.Join(image.Save(t.Context(), archive, "mine", product), archive.Close(), os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(ownImage), 0o600))
	must.Do(t, err)
	p := prepare(t, dir, "touchstone", "benchmark", "-f", "plan.yaml")
	p.cmd.Env = append(p.cmd.Env, "TOUCHSTONE_CACHE="+filepath.Join(dir, "cache"))
	p.run()
	p.ends(3)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Trials) != 6 {
		t.Errorf("there are %d trials, want 6", len(run.Trials))
	}
	for _, trial := range run.Trials {
		want := result.OK
		if trial.Benchmark == "app.calls.none" {
			want = result.Failed
		}
		if trial.Status != want || want == result.OK && (len(trial.Values("Rate")) != 1 || trial.Values("Rate")[0] <= 0) {
			t.Errorf("%s on %s: %s: %s, with the rate %v", trial.Benchmark, trial.Target, trial.Status, trial.Reason, trial.Values("Rate"))
		}
	}
}

// TestRealOwnWorkload runs the example of custom workloads unchanged.
func TestRealOwnWorkload(t *testing.T) {
	cells.Need(t, "cli/own")
	needRoot(t, "runc", "crun", "runsc")
	enginetest.Workload(t)
	t.Parallel()
	example, err := filepath.Abs("../../examples/custom-workload.yaml")
	must.Do(t, err)
	dir := t.TempDir()
	p := start(t, dir, "benchmark", "-f", example, "--runs", "1", "--warmup", "0")
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Trials) != 8 {
		t.Errorf("there are %d trials, want 8", len(run.Trials))
	}
	for _, trial := range run.Trials {
		if trial.Status != result.OK || len(trial.Samples) < 2 {
			t.Errorf("%s on %s: %s: %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
		}
	}
}
