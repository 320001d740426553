package workload_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

func TestProbeGrow(t *testing.T) {
	got := runProbe(t, workload.Grow(3)...)
	if want := "held 0\nheld 1048576\nheld 2097152\nheld 3145728\n"; got != (result{stdout: want}) {
		t.Errorf("%+v, want a line before the first MiB and after each", got)
	}
}

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

func parsed[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(line string) (any, error) { return parse(line) }
}

// Each kind of line has one format.
func TestLinesOfProgress(t *testing.T) {
	for _, tt := range []struct {
		parse      func(string) (any, error)
		line, want string
		bad        []string
	}{
		{parsed(workload.ParseHeld), "held 66060288", "66060288", []string{
			"", "held", "held ", "held 1", "held -1048576", "held 1048576 ", "held +1048576", "kept 1048576", "1048576", "held 18446744073709551616",
		}},
		{parsed(workload.ParseTick), "tick 7", "7", []string{"", "tick", "tick ", "tick 0", "tick -1", "tick 1 ", "tock 1", "1"}},
		{parsed(workload.ParseServing), "ready port=65535", "65535", []string{
			"", "ready", "ready port=", "ready port=0", "ready port=65536", "ready port=-1", "ready port=80\n", "port=80",
		}},
		{parsed(workload.ParseSolved), "solved 17", "17", []string{
			"", "solved", "solved 0", "solved -1", "solved 1 ", "moved 1", "solved 1e3", strings.Repeat("9", 400),
		}},
		{parsed(workload.ParseMoved), "moved 335544320", "335544320", []string{"", "solved 1"}},
		{parsed(workload.ParseForks), "forks 300 live 256 refused 12", "{300 256 12}", []string{
			"", "forks 1 live 1", "forks 1 live x refused 1", "forks 1 live 1 refused -1", "forks 1 live 1 refused 1 more",
		}},
	} {
		if got, err := tt.parse(tt.line); fmt.Sprint(got) != tt.want || err != nil {
			t.Errorf("%q is %v, %v; want %s", tt.line, got, err, tt.want)
		}
		for _, line := range tt.bad {
			if got, err := tt.parse(line); err == nil {
				t.Errorf("%q is %v beside %q", line, got, tt.line)
			}
		}
	}
}
