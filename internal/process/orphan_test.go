package process

import (
	"context"
	"os"
	"os/exec"
	"strconv"
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

// A container's process may get the ID of an orphan that exited earlier. The old exit must not be reported for it.
func TestAdoptWithReusedPID(t *testing.T) {
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `(read x <&3; exit 7) >&2 & echo $!`)
	cmd.ExtraFiles = []*os.File{r}
	cmd.Stdout = &text
	if err := l.Run(context.WithoutCancel(t.Context()), cmd); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	pid, err := strconv.Atoi(strings.TrimSpace(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.ended[pid] = Exit{Status: 3 << 8}
	l.mu.Unlock()
	o := l.Adopt(pid)
	select {
	case <-o.Done():
		t.Fatalf("a running process is reported as exited with status %d", o.Exit().Status.ExitStatus())
	default:
	}
	_ = w.Close()
	<-o.Done()
	if got := o.Exit().Status.ExitStatus(); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
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
