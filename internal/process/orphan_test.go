package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func isSubreaper(t *testing.T) bool {
	t.Helper()
	var on int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	return on != 0
}

// The number of remembered exits of strays is bounded.
func TestRememberedOrphansAreBounded(t *testing.T) {
	l := &Launcher{awaited: map[int]*Process{}, ended: map[int]Exit{}}
	for pid := range rememberedOrphans {
		l.ended[1<<22+pid] = Exit{}
	}
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil { // not a child of the launcher, so the launcher treats it as an orphan
		t.Fatal(err)
	}
	for len(l.ended) >= rememberedOrphans {
		l.reap()
	}
	if _, ok := l.ended[cmd.Process.Pid]; !ok || len(l.ended) != 1 {
		t.Errorf("%d exits are remembered, the last among them: %v", len(l.ended), ok)
	}
	_ = cmd.Wait() // the launcher has reaped it
}

func TestFailedNewRestoresState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a mount namespace")
	}
	if _, err := New(Options{Hide: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "unmount") {
		t.Errorf("New() = %v with an invalid mount point", err)
	}
	if isSubreaper(t) {
		t.Error("the program is still a subreaper, so unreaped orphans accumulate")
	}
}

func TestCloseRestoresState(t *testing.T) {
	for range 3 { // launchers one after the other are allowed
		l, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !isSubreaper(t) {
			t.Error("the program is not a subreaper")
		}
		if second, err := New(Options{}); err == nil {
			t.Error("New creates a second launcher, which would reap the children of the first")
			_ = second.Close()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if isSubreaper(t) {
			t.Error("the program is a subreaper after Close")
		}
	}
}
