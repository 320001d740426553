package native_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const terminatedVariable = "TOUCHSTONE_TEST_TERMINATED"

// An interrupted suite ends its tests by SIGTERM. Sessions leave nothing then either.
func TestTerminatedSessionLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make cgroups")
	}
	if os.Getenv(terminatedVariable) != "" {
		s, e := open(t)
		enginetest.Running(t, e, spec(s, 1, probe.Ready()...))
		fmt.Println("session", s.RunID, s.State)
		select {} // until SIGTERM
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), terminatedVariable+"=1", "TMPDIR="+t.TempDir()) // no cleanup of a test runs in it
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	lines := bufio.NewScanner(out)
	var id, state string
	for id == "" && lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "session %s %s", &id, &state)
	}
	groups, err := cgroup.Detect("/")
	if err != nil || id == "" {
		t.Fatalf("the session is %q, %v", id, err)
	}
	left := func() (list []string) {
		for _, m := range groups.Mounts {
			found, _ := filepath.Glob(filepath.Join(m.Dir, groups.Base(), engine.Prefix+id))
			list = append(list, found...)
		}
		if _, err := os.Stat(state); err == nil {
			list = append(list, state)
		}
		return list
	}
	if len(left()) < 2 {
		t.Errorf("a live session has only %q", left())
	}
	must.Do(t, cmd.Process.Signal(unix.SIGTERM))
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the program ended with %v, want SIGTERM", err)
	}
	if list := left(); len(list) > 0 {
		t.Errorf("%q is left", list)
	}
}
