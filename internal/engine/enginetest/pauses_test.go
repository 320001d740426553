package enginetest

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A program with a higher priority that takes a CPU away is a pause.
func TestPauses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs the right to real-time priorities: run as root")
	}
	p := WatchPauses(t)
	hog := exec.CommandContext(t.Context(), "chrt", "--fifo", "3", "timeout", "0.2", "chrt", "--fifo", "2", "sh", "-c", "while :; do :; done")
	var ended *exec.ExitError
	if out, err := hog.CombinedOutput(); !errors.As(err, &ended) || ended.ExitCode() != 124 {
		t.Fatalf("%v: %s", err, out)
	}
	time.Sleep(LeastPause) // until the thread below has noted it
	if got := p.Total(); got < 100*time.Millisecond {
		t.Errorf("the pauses sum up to %v, want about 200ms", got)
	}
}
