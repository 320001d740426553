package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
)

func launcher(t *testing.T, opts process.Options) *process.Launcher {
	t.Helper()
	l, err := process.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestOrphanIsReapedWithItsStatus(t *testing.T) {
	l := launcher(t, process.Options{})
	pidFile := filepath.Join(t.TempDir(), "pid")
	// The shell leaves its child behind. The child exits with 7 at the end of its input.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `(read x <&3; exit 7) & echo $! >"$0"`, pidFile)
	cmd.ExtraFiles = []*os.File{r}
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	o := l.Adopt(pid)
	select {
	case <-o.Done():
		t.Fatal("a running orphan is reported as exited")
	default:
	}
	_ = w.Close()
	<-o.Done()
	if got := o.Exit().Status.ExitStatus(); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the orphan was not reaped: kill(0) gives %v", err)
	}
}

func TestAdoptAfterExit(t *testing.T) {
	l := launcher(t, process.Options{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The orphan must exit after the shell, or the shell would reap it.
	cmd := exec.Command("/bin/sh", "-c", `(read x <&3; exit 5) >&2 & echo $!`)
	cmd.ExtraFiles = []*os.File{r}
	var out strings.Builder
	cmd.Stdout = &out
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) { // until the orphan is reaped
		runtime.Gosched()
	}
	o := l.Adopt(pid)
	<-o.Done()
	if got := o.Exit().Status.ExitStatus(); got != 5 {
		t.Errorf("exit status %d, want 5", got)
	}
}

// Hundreds of children and orphans exit at the same time. Run must get the exit of each child, and every orphan must be reaped.
func TestConcurrentExits(t *testing.T) {
	l := launcher(t, process.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 40 {
				err := l.Run(t.Context(), exec.Command("/bin/sh", "-c", "(:) & (:) & exit 3"))
				var exit *process.ExitError
				if !errors.As(err, &exit) || exit.Exit.Status.ExitStatus() != 3 {
					t.Errorf("run: %v, want exit code 3", err)
				}
			}
		})
	}
	wg.Wait()
	if l.CPU() <= 0 {
		t.Error("640 orphans and 320 children used no CPU time")
	}
}

func TestCancelledCommandIsKilled(t *testing.T) {
	l := launcher(t, process.Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo up; read forever <&3")
	cmd.Stdout = w
	block, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{block}
	go func() {
		line := make([]byte, 3)
		_, _ = r.Read(line)
		cancel(why)
	}()
	if err := l.Run(ctx, cmd); !errors.Is(err, why) {
		t.Errorf("run: %v, want the cause of the cancellation", err)
	}
	for _, f := range []*os.File{r, w, block, hold} {
		_ = f.Close()
	}
}

// A runtime can be a script with children. They must be killed with it.
func TestCancelledCommandKillsProcessGroup(t *testing.T) {
	l := launcher(t, process.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	block, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "(read forever <&3) & echo $!; wait")
	cmd.Stdout = w
	cmd.ExtraFiles = []*os.File{block}
	child := make(chan int, 1)
	go func() {
		pid := 0
		_, _ = fmt.Fscanln(r, &pid)
		child <- pid
		cancel()
	}()
	if err := l.Run(ctx, cmd); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want the cancellation", err)
	}
	pid := <-child
	if pid <= 1 {
		t.Fatalf("the command printed %d as the pid of its child", pid)
	}
	<-l.Adopt(pid).Done() // hangs if the child does not exit
	for _, f := range []*os.File{r, w, block, hold} {
		_ = f.Close()
	}
}

func TestHiddenMountIsHiddenFromChildrenOnly(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: makes mounts")
	}
	dir := t.TempDir()
	if err := syscall.Mount("touchstone-test", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("the program does not see the mount either: %v", err)
		}
	})
	mounts := func(l *process.Launcher) string {
		var out strings.Builder
		cmd := exec.Command("/bin/cat", "/proc/self/mounts")
		cmd.Stdout = &out
		if err := l.Run(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	l := launcher(t, process.Options{Hide: []string{dir}})
	if strings.Contains(mounts(l), "touchstone-test "+dir) {
		t.Error("the child sees the hidden mount")
	}
	// Files that a child makes at the mount point are not on the host, and EmptyHidden removes them.
	file := filepath.Join(dir, "group", "cgroup.procs")
	made := func() bool { return l.Run(t.Context(), exec.Command("/usr/bin/test", "-e", file)) == nil }
	if err := l.Run(t.Context(), exec.Command("/bin/mkdir", "-p", file)); err != nil || !made() {
		t.Fatalf("a child cannot make a directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "group")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is on the host: %v", err)
	}
	if err := l.EmptyHidden(); err != nil || made() {
		t.Errorf("EmptyHidden() = %v, and the directory is left: %v", err, made())
	}
}

func BenchmarkRun(b *testing.B) {
	l, err := process.New(process.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	start := time.Now()
	for b.Loop() {
		if err := l.Run(b.Context(), exec.Command("/bin/true")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(l.CPU())/float64(time.Since(start)), "child-cpu/wall")
}
