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

// An orphan of yesterday had the ID that a container's process has today. Its end must
// not be taken for the container's.
func TestOrphanWithTheIDOfOneThatEnded(t *testing.T) {
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
		t.Fatalf("it counts as ended, with exit status %d, while it runs", o.Exit().Status.ExitStatus())
	default:
	}
	_ = w.Close()
	<-o.Done()
	if got := o.Exit().Status.ExitStatus(); got != 7 {
		t.Errorf("exit status %d, want its own, 7", got)
	}
}

// The exits of orphans that nobody asks for do not add up.
func TestRememberedOrphansAreBounded(t *testing.T) {
	l := &Launcher{children: map[int]*Child{}, orphans: map[int]*Orphan{}, ended: map[int]Exit{}}
	for pid := range rememberedOrphans {
		l.ended[1<<22+pid] = Exit{}
	}
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil { // no child of the launcher's: to it this is an orphan
		t.Fatal(err)
	}
	for len(l.ended) >= rememberedOrphans {
		l.reap()
	}
	if _, ok := l.ended[cmd.Process.Pid]; !ok || len(l.ended) != 1 {
		t.Errorf("%d exits are remembered, the last among them: %v", len(l.ended), ok)
	}
	_ = cmd.Wait() // somebody else has reaped it
}

func TestLauncherThatCannotBeMade(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a mount namespace")
	}
	if _, err := New(Options{Hide: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "unmount") {
		t.Errorf("New() = %v with a mount point that is none", err)
	}
	if isSubreaper(t) {
		t.Error("the program is still a subreaper: orphans pile up that nobody reaps")
	}
}

func TestLauncherGivesBackWhatItTook(t *testing.T) {
	for range 3 { // one after the other there can be many
		l, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !isSubreaper(t) {
			t.Error("the program is no subreaper")
		}
		if second, err := New(Options{}); err == nil {
			t.Error("there is a second launcher, which steals the children of the first")
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
