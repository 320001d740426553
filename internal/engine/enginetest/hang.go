package enginetest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Hang stops the process of an engine's private daemon, so that it does not answer. A signal reaches the threads one after the other, and a
// thread that still runs may answer a request. Hang waits until the kernel reports that all have stopped.
func Hang(t *testing.T, e engine.Engine) {
	t.Helper()
	pid := e.(engine.DaemonBacked).Daemon().PIDs[0]
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatalf("stop process %d: %v", pid, err)
	}
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil)
		if err == nil {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("wait until process %d has stopped: %v", pid, err)
		}
	}
}
