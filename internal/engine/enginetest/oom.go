package enginetest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

// testOOMScore checks that the kernel would kill every process of the run before this program: daemons, monitors, sandboxes and the
// program in the container. It finds them by their cgroups, which have the run's name. This program's own score is of no use here,
// because the launcher raises it for the moment of a fork.
//
// Invariant host-guard.
func (s *suite) testOOMScore(t *testing.T) {
	s.startReady(t)
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	found := 0
	for _, dir := range dirs {
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup")) // the process may have exited, or belong to another user
		if !strings.Contains(string(groups), s.RunID) || filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue
		}
		score, ok := oomScore(dir)
		if !ok {
			continue
		}
		found++
		if score < s.OOMScore {
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			t.Errorf("process %s (%s) has the OOM score %d, want at least %d", filepath.Base(dir), strings.TrimSpace(string(name)), score, s.OOMScore)
		}
	}
	if found == 0 {
		record.Skip(t, "the engine's processes have no cgroups of the run")
	}
}

// oomScore reads the score of a process.
func oomScore(dir string) (score int, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "oom_score_adj"))
	if err != nil {
		return 0, false
	}
	score, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return score, err == nil
}

// MonitorGaps are the gaps of a target whose runtime conmon starts. conmon 2.1.6 starts it with an OOM score of 0. Runtimes set the
// container's own score, but gVisor's sandbox keeps the score of the call.
func MonitorGaps(target string) map[string]string {
	if !strings.Contains(target, "/runsc") {
		return nil
	}
	return map[string]string{"OOMScore": "conmon 2.1.6 starts runsc with an OOM score of 0, and the sandbox keeps it"}
}
