package workdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// inNamespace is an environment variable. It marks a test that runs as the first process of a PID namespace.
const inNamespace = "TOUCHSTONE_TEST_PID_NAMESPACE"

// A process gets the PID of a leftover after the check and before the signal. It must survive.
//
// Invariant recycled-pid: A process that gets the PID of a leftover is never killed.
func TestRecycledPIDIsNotKilled(t *testing.T) {
	const lastPID = "/proc/sys/kernel/ns_last_pid"
	if os.Getenv(inNamespace) == "" {
		if _, err := os.Stat(lastPID); errors.Is(err, fs.ErrNotExist) || os.Geteuid() != 0 {
			t.Skip("needs root and a kernel with CONFIG_CHECKPOINT_RESTORE, to choose a PID")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inNamespace+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("in a PID namespace: %v\n%s", err, out)
		}
		return
	}
	// A thread of this process may take the PID first. Then another leftover tries.
	for range 100 {
		leftover, next := waiting(t), waiter{}
		pid := leftover.Process.Pid
		isKilled, err := killHeld(pid, func() bool {
			leftover.ends(t, "")
			must.Do(t, os.WriteFile(lastPID, fmt.Append(nil, pid-1), 0))
			next = waiting(t)
			return true
		})
		if isKilled || err != nil {
			t.Errorf("killHeld of a process that has exited = %v, %v", isKilled, err)
		}
		next.ends(t, "")
		if next.Process.Pid == pid {
			return
		}
	}
	t.Error("no process got the PID of the leftover")
}

func TestKillHeld(t *testing.T) {
	p := waiting(t)
	if isKilled, err := killHeld(p.Process.Pid, func() bool { return false }); isKilled || err != nil {
		t.Errorf("killHeld of another program's process = %v, %v", isKilled, err)
	}
	if isKilled, err := killHeld(p.Process.Pid, func() bool { return true }); !isKilled || err != nil {
		t.Errorf("killHeld of a leftover = %v, %v", isKilled, err)
	}
	p.ends(t, "signal: killed")
	if isKilled, err := killHeld(p.Process.Pid, func() bool { return true }); isKilled || err != nil {
		t.Errorf("killHeld of an exited process = %v, %v", isKilled, err)
	}
}

// waiter is a process that ends with its input.
type waiter struct {
	*exec.Cmd
	input io.Closer
}

func waiting(t *testing.T) waiter {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	return waiter{cmd, in}
}

// ends closes the input and checks how the process ends.
func (w waiter) ends(t *testing.T, want string) {
	t.Helper()
	_ = w.input.Close()
	got := ""
	if err := w.Wait(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("process %d ended with %q, want %q", w.Process.Pid, got, want)
	}
}
