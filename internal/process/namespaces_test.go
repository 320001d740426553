package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Only children see a mount in the launcher's private mount namespace; this program and the host do not.
func TestPrivateMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: makes mounts")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	l, err := process.New(process.Options{Private: true})
	must.Do(t, err)
	err = l.InNamespace(func() error {
		if err := syscall.Mount("touchstone-test", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		return os.WriteFile(file, nil, 0o600) // this thread is in the namespace
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.Run(t.Context(), exec.Command("/bin/ls", file)); err != nil {
		t.Errorf("a child does not see the mount: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("this program sees the mount")
	}
	mounts, err := os.ReadFile("/proc/1/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("the host's mounts (%v):\n%s", err, mounts)
	}
	must.Do(t, l.Close())
}

// namespacesOf returns the PID and IPC namespaces of a process, by its directory in /proc.
func namespacesOf(t *testing.T, proc string) string {
	t.Helper()
	var names []string
	for _, kind := range []string{"pid", "ipc"} {
		name, err := os.Readlink(proc + "/ns/" + kind)
		must.Do(t, err)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// A command beside a process is in its namespaces, and the next command is in the launcher's again.
//
// Invariant image-rights.
func TestStartBeside(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: enters namespaces")
	}
	l := launcher(t, process.Options{Private: true})
	r, w, err := os.Pipe()
	must.Do(t, err)
	cmd := exec.Command("/bin/sh", "-c", "read x; exit 7")
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	first, err := l.Spawn(cmd)
	must.Do(t, err)
	_ = r.Close()
	ours, their := namespacesOf(t, "/proc/self"), namespacesOf(t, fmt.Sprintf("/proc/%d", first.Pid()))
	look := func(start func(*exec.Cmd) (<-chan process.Exit, error)) string {
		t.Helper()
		var out bytes.Buffer
		cmd := exec.Command("/bin/sh", "-c", "readlink /proc/self/ns/pid /proc/self/ns/ipc")
		cmd.Stdout = &out
		done, err := start(cmd)
		must.Do(t, err)
		if exit := <-done; exit.Status != 0 {
			t.Errorf("readlink exited with %v", exit.Status)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	join := func(cmd *exec.Cmd) (<-chan process.Exit, error) { return l.StartBeside(t.Context(), cmd, first) }
	for range 3 {
		if got := look(join); got != their || got == ours {
			t.Errorf("a command beside the process is in %s, want %s", got, their)
		}
		if got := look(l.Start); got != ours {
			t.Errorf("the next command is in %s, want %s", got, ours)
		}
	}
	if _, err := join(exec.Command("/no-such-program")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start of a missing program = %v", err)
	}
	_ = w.Close()
	if exit := first.Wait(); exit.Status.ExitStatus() != 7 {
		t.Errorf("the first process exited with %d, want 7", exit.Status.ExitStatus())
	}
	if _, err := join(exec.Command("/bin/true")); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("start beside an exited process = %v, want %v", err, os.ErrProcessDone)
	}
	if got := look(l.Start); got != ours {
		t.Errorf("after the errors a command is in %s, want %s", got, ours)
	}
}

// The first process of a PID namespace is a zombie before it is reaped. Then the kernel refuses a fork beside it.
func TestStartBesideZombie(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: enters namespaces")
	}
	l := launcher(t, process.Options{})
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	first, err := l.Spawn(cmd) // without Wait nothing reaps it before a signal
	must.Do(t, err)
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, first.Pid(), &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil && !errors.Is(err, unix.ECHILD) {
		t.Fatal(err)
	}
	if _, err := l.StartBeside(t.Context(), exec.Command("/bin/true"), first); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("start beside a zombie = %v, want %v", err, os.ErrProcessDone)
	}
	first.Wait()
}
