package process_test

import (
	"errors"
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

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

func launcher(t *testing.T, opts process.Options) *process.Launcher {
	t.Helper()
	l, err := process.New(opts)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, l.Close()) })
	return l
}

// orphan starts a process that exits with 7 when release is called. The shell that started it has exited.
func orphan(t *testing.T, l *process.Launcher) (pid int, release func()) {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	cmd := exec.Command("/bin/sh", "-c", `(read x <&3; exit 7) >&2 & echo $!`)
	cmd.ExtraFiles = []*os.File{r}
	var out strings.Builder
	cmd.Stdout = &out
	must.Do(t, l.Run(t.Context(), cmd))
	_ = r.Close()
	pid, err = strconv.Atoi(strings.TrimSpace(out.String()))
	must.Do(t, err)
	return pid, func() { _ = w.Close() }
}

// After Halt no program starts, in any way, and a program that runs ends as before.
func TestHalt(t *testing.T) {
	l := launcher(t, process.Options{})
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	done, err := l.Start(cmd)
	must.Do(t, err)
	l.Halt()
	if err := l.Run(t.Context(), exec.Command("true")); !errors.Is(err, process.ErrHalted) {
		t.Errorf("Run() after Halt = %v, want %v", err, process.ErrHalted)
	}
	if _, err := l.Call(t.Context(), shell("exit 0", os.Stderr)); !errors.Is(err, process.ErrHalted) {
		t.Errorf("Call() after Halt = %v, want %v", err, process.ErrHalted)
	}
	must.Do(t, in.Close())
	if exit := <-done; exit.Status.ExitStatus() != 0 {
		t.Errorf("the program that ran during Halt ended with %v, want 0", exit.Status)
	}
}

// An orphan can be adopted before and after its exit. The old exit of a process that had its ID is not reported for it.
//
// Invariant launcher.
func TestOrphanIsReapedWithItsStatus(t *testing.T) {
	l := launcher(t, process.Options{})
	reaped := func(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
	for _, moment := range []string{"before its exit", "with the ID of another", "after its exit"} {
		pid, release := orphan(t, l)
		switch moment {
		case "with the ID of another":
			process.Remember(l, pid, 3)
		case "after its exit":
			for release(); !reaped(pid); {
				runtime.Gosched()
			}
		}
		o := l.Adopt(pid)
		if moment != "after its exit" {
			select {
			case <-o.Done():
				t.Fatalf("%s: a running orphan is reported as exited with %d", moment, o.Exit().Status.ExitStatus())
			default:
			}
			release()
		}
		<-o.Done()
		if got := o.Exit().Status.ExitStatus(); got != 7 || !reaped(pid) {
			t.Errorf("%s: exit status %d, want 7; reaped: %v", moment, got, reaped(pid))
		}
	}
}

// Hundreds of children and orphans exit at the same time. Run must get the exit of each child, and every orphan must be reaped.
//
// Invariant launcher: All children are started by the launcher, because it reaps every child and every orphan.
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

// Invariant host-mounts: A run changes none of the host's mounts.
func TestHiddenMountIsHiddenFromChildrenOnly(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: makes mounts")
	}
	dir := t.TempDir()
	must.Do(t, syscall.Mount("touchstone-test", dir, "tmpfs", 0, ""))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("the program does not see the mount either: %v", err)
		}
	})
	mounts := func(l *process.Launcher) string {
		var out strings.Builder
		cmd := exec.Command("/bin/cat", "/proc/self/mounts")
		cmd.Stdout = &out
		must.Do(t, l.Run(t.Context(), cmd))
		return out.String()
	}
	l := launcher(t, process.Options{Hide: []string{dir}})
	if strings.Contains(mounts(l), "touchstone-test "+dir) {
		t.Error("the child sees the hidden mount")
	}
	// Files that a child makes at the mount point are not on the host, and EmptyHidden removes them.
	file := filepath.Join(dir, "group", "cgroup.procs")
	exists := func() bool { return l.Run(t.Context(), exec.Command("/usr/bin/test", "-e", file)) == nil }
	if err := l.Run(t.Context(), exec.Command("/bin/mkdir", "-p", file)); err != nil || !exists() {
		t.Fatalf("a child cannot make a directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "group")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is on the host: %v", err)
	}
	if err := l.EmptyHidden(); err != nil || exists() {
		t.Errorf("EmptyHidden() = %v, and the directory is left: %v", err, exists())
	}
}

func BenchmarkRun(b *testing.B) {
	l, err := process.New(process.Options{})
	must.Do(b, err)
	defer func() { _ = l.Close() }()
	start := time.Now()
	for b.Loop() {
		must.Do(b, l.Run(b.Context(), exec.Command("/bin/true")))
	}
	b.ReportMetric(float64(l.CPU())/float64(time.Since(start)), "child-cpu/wall")
}
