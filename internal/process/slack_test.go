package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// slacks gives the timer slack of each thread of this program, without those that end meanwhile.
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

// Only Touchstone's own timers may be late, and only while it has a launcher: what it starts
// is measured.
func TestTimersOfChildrenAreAsUsual(t *testing.T) {
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
		t.Errorf("a child has a timer slack of %s ns, want %d as without a launcher", got, usual)
	}
	if own := slacks(t); count(own, usual) != 1 || count(own, slack) != len(own)-1 {
		t.Errorf("timer slacks of the threads: %v; want one of %d ns, which forks, and else %d", own, usual, slack)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if own := slacks(t); count(own, usual) != len(own) {
		t.Errorf("timer slacks of the threads after the end of the launcher: %v, want %d ns", own, usual)
	}
}
