package enginetest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A program with a higher priority that takes a CPU away is a pause.
func TestPauses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs the right to real-time priorities: run as root")
	}
	p := WatchPauses(t)
	var affinity unix.CPUSet
	must.Do(t, unix.SchedGetaffinity(0, &affinity))
	first := 0
	for !affinity.IsSet(first) {
		first++
	}
	// On two CPUs in turn it would cause many short pauses, which do not count.
	hog := exec.CommandContext(t.Context(), "chrt", "--fifo", "3", "timeout", "0.3", "taskset", "--cpu-list", strconv.Itoa(first),
		"chrt", "--fifo", "2", "sh", "-c", "while :; do :; done")
	var exitErr *exec.ExitError
	if out, err := hog.CombinedOutput(); !errors.As(err, &exitErr) || exitErr.ExitCode() != 124 {
		t.Fatalf("%v: %s", err, out)
	}
	// The thread below the hog notes the pause when it runs again.
	for hangs := time.Now().Add(time.Minute); p.Total() < 100*time.Millisecond; runtime.Gosched() {
		if time.Now().After(hangs) {
			t.Fatalf("the pauses sum up to %v, want about 300ms", p.Total())
		}
	}
}
