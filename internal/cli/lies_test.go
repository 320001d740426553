package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestLyingRuntimeOfEngine: an engine believes its runtime, and the trial fails all the same. TestTrialGoesWrong has the lies of a runtime alone.
//
// Invariant lying-calls.
func TestLyingRuntimeOfEngine(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	for name, daemon := range map[string]string{"docker": "dockerd", "podman": "podman", "containerd": "containerd"} {
		for _, c := range []struct{ call, benchmark, reason string }{
			{"delete", lifecycle, `returned success without deleting it: want nothing of it, got .*state directory /`},
			{"update", "operations.container.update", `^update returned success without changing the limit: want 0.5 CPUs in the container's cgroup, got none`},
			{"resume", "operations.container.pause", `^resume returned success without resuming the process: want a line of output`},
		} {
			if name == "containerd" && c.call == "resume" {
				continue // CRI has no call for it
			}
			t.Run(name+" "+c.call, func(t *testing.T) {
				if _, err := exec.LookPath(daemon); err != nil {
					enginetest.Require(t, name+"/runc", &engine.UnsupportedError{What: name, Reason: err.Error()})
				}
				t.Parallel()
				w := newWrapper(t, "runc")
				w.on(c.call, "exit 0")
				lie(t, w, name+"/wrapped", c.benchmark, c.reason, "--managed")
			})
		}
	}
}

// lie runs a benchmark on a lying runtime, and checks the only trial.
func lie(t *testing.T, w *wrapper, target, benchmark, reason string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	plan := "version: 1\ntargets: [" + target + "]\nruntimes: {wrapped: " + w.path + "}\n" +
		"benchmarks: [" + benchmark + "]\nblocks: 1\nwarmup: 0\ntimeout: {trial: 2m, call: 60s}\nseed: 1\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600))
	p := start(t, dir, append([]string{"benchmark", "-f", "plan.yaml"}, flags...)...)
	p.ends(3)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Trials) != 1 {
		t.Fatalf("%d trials, want one: %+v", len(run.Trials), run.Trials)
	}
	trial := run.Trials[0]
	if trial.Status != result.Failed || len(trial.Samples) > 0 || !regexp.MustCompile(reason).MatchString(trial.Reason) {
		t.Errorf("%s because %q with %d samples; want it failed because of %q", trial.Status, strings.TrimSpace(trial.Reason), len(trial.Samples), reason)
	}
}
