package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// hangVariable makes TestThirdSignal the program that it tests.
const hangVariable = "TOUCHSTONE_TEST_HANG"

// hang is a run whose end and whose clean-up never return.
func hang() {
	app := New(System())
	wait := func() {
		for { // a signal ends the call
			_, _ = unix.Ppoll(nil, nil, nil)
		}
	}
	app.onAbandon(func() error {
		fmt.Println("abandoned")
		wait()
		return nil
	})
	app.supervise(nil, func(ctx context.Context) int {
		fmt.Println("running")
		<-ctx.Done()
		fmt.Println("interrupted")
		wait()
		return ExitOK
	})
}

// The third signal ends the program, whatever hangs.
//
// Invariant third-signal: A third signal ends the program at once.
func TestThirdSignal(t *testing.T) {
	if os.Getenv(hangVariable) != "" {
		hang()
		return
	}
	self, err := os.Executable()
	must.Do(t, err)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), hangVariable+"=1", "TMPDIR="+t.TempDir()) // the killed process leaves files of TestMain
		stdout, err := cmd.StdoutPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for _, want := range []string{"running", "interrupted", "abandoned"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("it printed %q, want %q", lines.Text(), want)
			}
			must.Do(t, cmd.Process.Signal(s))
		}
		err = cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != s {
			t.Errorf("after the third %v: %v, want the end by the signal", s, err)
		}
	}
}
