package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// TestRealPortability: an image of another architecture is refused or emulated, also if the kernel has no emulator. A program of
// the 32-bit architecture runs on each runtime that shares the kernel, and gVisor's kernel refuses it.
func TestRealPortability(t *testing.T) {
	cells.Need(t, "cli/portability")
	needRoot(t, "runc", "runsc", "containerd")
	t.Parallel()
	const name = "portability.image.run"
	dir := t.TempDir()
	plan := "version: 1\ntargets: [native, oci/runc, oci/runsc, containerd/runc]\nblocks: 1\nwarmup: 0\nbenchmarks:\n" +
		"  - {name: " + name + ", params: {architecture: other}}\n"
	if runtime.GOARCH == "amd64" {
		plan += "  - {name: " + name + ", params: {architecture: \"386\"}}\n"
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600))
	p := start(t, dir, "benchmark", "--managed", "-f", "plan.yaml")
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if want := 4 * strings.Count(plan, "architecture"); len(run.Trials) != want {
		t.Errorf("there are %d trials, want %d", len(run.Trials), want)
	}
	for _, trial := range run.Trials {
		outcome, words := trial.Conditions["outcome"], trial.Conditions["in the engine's words"]
		runs := strings.HasPrefix(outcome, "runs")
		if trial.Status != result.OK || outcome == "" || runs != (words == "") {
			t.Errorf("%s %s: %s because %q, outcome %q, words %q", trial.Target, trial.Params, trial.Status, trial.Reason, outcome, words)
		}
		emulated := !strings.HasPrefix(trial.Conditions["emulator"], "none") && !strings.HasPrefix(trial.Conditions["emulator"], "not known")
		switch isShared := trial.Target != "oci/runsc"; {
		case trial.Params == "architecture=386" && runs != isShared:
			t.Errorf("%s with a 32-bit program: %s", trial.Target, outcome)
		case trial.Params == "architecture=other" && !emulated && !strings.HasPrefix(outcome, "exec format error"):
			t.Errorf("%s with a program of another architecture: %s", trial.Target, outcome)
		}
	}
}
