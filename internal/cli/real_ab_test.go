package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// TestRealAB compares crun with a crun whose create takes a second longer, which is several times its own time, also on a busy machine. Both have a wrapper of the
// same kind, so only the delay differs.
func TestRealAB(t *testing.T) {
	cells.Need(t, "cli/ab")
	needRoot(t, "crun")
	t.Parallel()
	binary, err := exec.LookPath("crun")
	must.Do(t, err)
	dir := t.TempDir()
	wrapped := func(name string, flags ...string) string {
		p := start(t, dir, append([]string{"delay-runtime", binary, name}, flags...)...)
		p.ends(0)
		return filepath.Join(dir, strings.TrimSpace(p.stdout.String()))
	}
	pathA, pathB := wrapped("fast"), wrapped("slow", "--sleep", "create=1s")
	p := start(t, dir, "ab", "--a", "oci/crun="+pathA, "--b", "oci/crun="+pathB, "--repeat", "4", "--blocks", "6")
	p.ends(4)
	p.says(`^A, the old build  oci/crun-a, crun version `, `/runtime-fast$`, `^B, the new build  oci/crun-b, crun version `, `/runtime-slow$`, `^B is worse than the margin\.$`)
	text, err := os.ReadFile(filepath.Join(dir, "out", "ab.json"))
	must.Do(t, err)
	var document struct {
		Values []struct{ Ratio float64 }
		Runs   []struct{ ID string }
	}
	must.Do(t, json.Unmarshal(text, &document))
	if len(document.Runs) != 4 || len(document.Values) != 1 || document.Values[0].Ratio < 1.5 {
		t.Fatalf("%+v; want 4 runs and a ratio of several", document)
	}
	for _, r := range document.Runs {
		nothingLeft(t, r.ID)
		if run := export(t, dir, r.ID); run.Baseline != "oci/crun-a" || len(run.Targets) != 2 || run.Targets[0].Binary == run.Targets[1].Binary {
			t.Errorf("run %s has the baseline %s and the targets %+v", r.ID, run.Baseline, run.Targets)
		}
	}
}
