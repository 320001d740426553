package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// nobody is the ID of a user without any rights.
const nobody = 65534

// TestWithoutRoot: the available targets without root depend on the host. Each of the others has a reason.
func TestWithoutRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts containers")
	}
	if os.Geteuid() != 0 {
		t.Skip("it needs root to become another user")
	}
	t.Parallel()
	dir, path := nobodysFolder(t)
	run := func(args ...string) *program {
		t.Helper()
		p := prepare(t, dir, append([]string{path}, args...)...)
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		p.run()
		return p
	}

	p := run("targets")
	p.ends(0, 5)
	p.says(`^RUNTIME +oci`, `^native: works; |^native: does not work`, `^Without root Touchstone measures only rootless containers`)

	p = run("benchmark", "--filter", lifecycle, "--runs", "1", "--warmup", "0")
	p.ends(0, 3, 5)
	p = run("export")
	p.ends(0)
	document, err := result.Decode(&p.stdout)
	must.Do(t, err)
	for _, trial := range document.Runs[0].Trials {
		if trial.Status != result.OK && trial.Reason == "" {
			t.Errorf("a trial on %s is %s without a reason", trial.Target, trial.Status)
		}
	}

	// A target that is named and does not work has a reason too.
	p = run("benchmark", "--targets", "native,oci/runc,oci/runsc,oci/none", "--filter", lifecycle, "--runs", "1", "-d", "named")
	p.ends(0, 3, 5)
	p.says(`^skipped: oci/none: `)

	p = run("cleanup")
	p.ends(0)
	p.says(`^nothing to remove$`)

	p = run("benchmark", "--targets", "fake/a", "--filter", lifecycle, "--runs", "1", "-d", "/proc/none")
	p.ends(1)
	p.says(`^touchstone: create the output folder: `)

	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		if !slices.Contains([]string{"out", "named", ".cache", "touchstone-" + strconv.Itoa(nobody)}, e.Name()) {
			t.Errorf("%s has been left in the folder", e.Name())
		}
	}
}

// nobodysFolder creates a folder for the user nobody, with a copy of the program. Other users cannot read the test's
// folders.
func nobodysFolder(t *testing.T) (dir, program string) {
	t.Helper()
	top, err := os.MkdirTemp("", "cli-") //nolint:usetesting // t.TempDir is below a folder for its owner alone
	must.Do(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	dir, program = filepath.Join(top, "work"), filepath.Join(top, "touchstone")
	found, err := exec.LookPath("touchstone")
	must.Do(t, errors.Join(err, os.Chmod(top, 0o755), os.Mkdir(dir, 0o755), os.Chown(dir, nobody, nobody)))
	command(t, "cp", found, program)
	return dir, program
}
