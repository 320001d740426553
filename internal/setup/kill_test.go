package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
)

var errNoSpace = unix.ENOSPC

// The variables of a set-up in a process of its own, which stops in the middle of a build or of a trial.
const (
	heldPlace = "SETUP_TEST_PLACE"
	heldPipe  = "SETUP_TEST_PIPE"
)

// hold reports that a place is reached, and waits for the end of the process.
func hold(place string) error {
	if os.Getenv(heldPlace) != place {
		return nil
	}
	if err := os.WriteFile(os.Getenv(heldPipe), []byte(place), 0o600); err != nil {
		return err
	}
	select {}
}

// TestHeldSetup is the process that TestKill kills.
func TestHeldSetup(t *testing.T) {
	if os.Getenv(heldPlace) == "" {
		t.Skip("it is the process of TestKill")
	}
	r := recipe("crun", "1.21")
	run := r.Build.Run
	r.Build.Run = func(ctx context.Context, w *work) error {
		if err := run(ctx, w); err != nil {
			return err
		}
		return hold("build")
	}
	s := newSetup(t, r)
	s.Root = os.Getenv("SETUP_TEST_ROOT")
	s.Try = func(context.Context, parts.Part) error { return hold("try") }
	must.Do(t, install(t, s, "crun"))
}

// TestKill: the next set-up, and Sweep, remove the files of a killed set-up. Sweep leaves the files of a running one alone.
//
// Invariant half-installed.
func TestKill(t *testing.T) {
	for _, place := range []string{"build", "try"} {
		for _, isSwept := range []bool{true, false} {
			s := newSetup(t, recipe("crun", "1.21"))
			pipe := filepath.Join(t.TempDir(), "pipe")
			must.Do(t, unix.Mkfifo(pipe, 0o600))
			cmd := exec.Command(os.Args[0], "-test.run=^TestHeldSetup$")
			// The killed process leaves its own directory.
			cmd.Env = append(os.Environ(), heldPlace+"="+place, heldPipe+"="+pipe, "SETUP_TEST_ROOT="+s.Root, "TMPDIR="+t.TempDir())
			must.Do(t, cmd.Start())
			text, err := os.ReadFile(pipe)
			if err != nil || string(text) != place {
				t.Fatalf("the set-up reports %q, %v", text, err)
			}
			files := content(t, s.Root)
			if removals, err := Sweep(s.Root); err != nil || len(removals) > 0 || len(files) == 0 {
				t.Errorf("Sweep of a store in use = %q, %v; it has %q", removals, err, files)
			}
			must.Do(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait() // it was killed
			if isSwept {
				if removals, err := Sweep(s.Root); err != nil || len(removals) != 1 {
					t.Errorf("Sweep = %q, %v", removals, err)
				}
				want(t, s.Root)
				continue
			}
			must.Do(t, install(t, s, "crun"))
			want(t, s.Root, "crun", "crun/1.21", "crun/1.21/bin", "crun/1.21/bin/crun", "crun/1.21/part.json", "crun/current -> 1.21")
		}
	}
	if removals, err := Sweep("/no/such/store"); err != nil || removals != nil {
		t.Errorf("Sweep of no store = %q, %v", removals, err)
	}
}
