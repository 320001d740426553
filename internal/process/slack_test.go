package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// slacks returns the timer slack of each thread of this program, except threads that end meanwhile.
func slacks(t *testing.T) map[string]int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join("/proc", filepath.Base(task), "timerslack_ns"))
		if err != nil {
			continue
		}
		ns, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(task)] = ns
	}
	return found
}

func count(found map[string]int, want int) (n int) {
	for _, ns := range found {
		if ns == want {
			n++
		}
	}
	return n
}

// Only Touchstone's own threads may have the larger timer slack, and only while it has a launcher. Children are measured, so they
// keep the usual slack.
func TestChildrenKeepUsualTimerSlack(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: sets the timer slack of other threads")
	}
	usual := usualSlack()
	if usual == slack {
		t.Skipf("the tests were started with the timer slack of a launcher, %d ns", usual)
	}
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	cmd := exec.CommandContext(t.Context(), "/bin/cat", "/proc/self/timerslack_ns")
	cmd.Stdout = &text
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(text.String()); got != strconv.Itoa(usual) {
		t.Errorf("a child has a timer slack of %s ns, want %d", got, usual)
	}
	if own := slacks(t); count(own, usual) != 1 || count(own, slack) != len(own)-1 {
		t.Errorf("timer slacks of the threads: %v; want %d ns for the forking thread and %d ns for the others", own, usual, slack)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if own := slacks(t); count(own, usual) != len(own) {
		t.Errorf("timer slacks of the threads after Close: %v, want %d ns", own, usual)
	}
}
