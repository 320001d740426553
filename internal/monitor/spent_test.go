package monitor

import (
	"os"
	"strings"
	"testing"
)

// The CPU time of a process grows, and is unknown once the process has exited.
func TestSpent(t *testing.T) {
	a := Begin(Target{Procs: func() ([]int, error) { return nil, nil }})
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	before, err := a.Spent([]int{os.Getpid()})
	if err != nil {
		t.Skipf("the kernel's records are not available: %v", err)
	}
	sum := 0
	for i := range 300_000_000 {
		sum += i
	}
	after, err := a.Spent([]int{os.Getpid()})
	if err != nil || after <= before {
		t.Errorf("Spent = %v, then %v, %v after a loop to %d", before, after, err, sum)
	}
	if _, err := a.Spent([]int{1 << 22}); err == nil || !strings.Contains(err.Error(), "exited") {
		t.Errorf("Spent of no process: %v", err)
	}
}
