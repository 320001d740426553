package enginetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// stateVariable names the state of the session that TestTerminatedSession leaves to a signal.
const stateVariable = "TOUCHSTONE_TEST_STATE"

// A signal ends the test binaries of an interrupted suite, and no cleanup of a test runs.
func TestTerminatedSession(t *testing.T) {
	if state := os.Getenv(stateVariable); state != "" {
		launcher, err := process.New(process.Options{})
		must.Do(t, err)
		removeAtTermination(engine.Session{State: state, Launcher: launcher})
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		state := filepath.Join(t.TempDir(), "state")
		must.Do(t, os.Mkdir(state, 0o700))
		victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTerminatedSession$")
		victim.Env = append(os.Environ(), stateVariable+"="+state)
		out, err := victim.StdoutPipe()
		must.Do(t, errors.Join(err, victim.Start()))
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the victim does not begin: %v", err)
		}
		must.Do(t, victim.Process.Signal(signal))
		_ = victim.Wait() // the status is below
		if status, is := victim.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != signal {
			t.Errorf("%s ended with %s, want the same signal", signal, victim.ProcessState)
		}
		if _, err := os.Stat(state); !os.IsNotExist(err) {
			t.Errorf("%s left the state of the session: %v", signal, err)
		}
	}
}
