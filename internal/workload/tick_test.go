package workload_test

import (
	"bufio"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The program writes numbered lines until SIGTERM. It sleeps between them: a program that does not sleep takes as much CPU time as
// wall time.
func TestProbeTick(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), probe(t), workload.Tick(5 * time.Millisecond)[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; n <= 20 && lines.Scan(); n++ {
		if got, err := workload.ParseTick(lines.Text()); got != n || err != nil {
			t.Errorf("line %d is %q: %d, %v", n, lines.Text(), got, err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // the lines before the signal
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if used := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime(); used > 40*time.Millisecond {
		t.Errorf("20 lines took %v of CPU time", used)
	}
}

func TestProbeTickRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"tick: an option is missing: --ms\n":                           {workload.Probe, "tick"},
		"tick: --ms must be a whole number from 1 to 3600000, not 0\n": {workload.Probe, "tick", "--ms", "0"},
		"tick: unexpected argument now\n":                              append(workload.Tick(time.Second), "now"),
	} {
		if got := runProbe(t, args...); got.code != 2 || got.stdout != "" || got.stderr != want {
			t.Errorf("%q: %+v, want code 2 and %q", args, got, want)
		}
	}
}

func TestParseTickRefuses(t *testing.T) {
	for _, line := range []string{"", "tick", "tick ", "tick 0", "tick -1", "tick 1 ", "tock 1", "1"} {
		if n, err := workload.ParseTick(line); err == nil {
			t.Errorf("ParseTick(%q) = %d", line, n)
		}
	}
}
