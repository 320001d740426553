package enginetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The impostors take the place of runsc, and change one thing. These are the names of their programs.
const (
	withoutKVM = "runsc-without-kvm" // runs on systrap when it is told to run on KVM
	silentExec = "runsc-silent-exec" // fails in an exec in the background without a reason, after the program's start
)

// impostor names a target whose runtime is an impostor, and adds it and the target with the real runsc to the session. Without runsc it ends
// the test as Require does.
func impostor(t *testing.T, s *engine.Session, name, role string) string {
	t.Helper()
	runsc, err := exec.LookPath("runsc")
	if err != nil {
		Require(t, name, &engine.UnsupportedError{What: name, Reason: err.Error()})
	}
	impostorTarget := Parse(t, name)
	impostorTarget.Runtime = "other"
	s.Runtimes = map[string]target.Runtime{impostorTarget.Runtime: {Path: writeImpostor(t, runsc, role)}}
	s.Targets = []target.Target{Parse(t, name), impostorTarget}
	return impostorTarget.String()
}

// writeImpostor makes the program. It is a copy of the test, because some machines have no shell. A link to the real runsc is beside it.
func writeImpostor(t *testing.T, runsc, role string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, role)
	copySelf(t, path)
	Check(t, os.Symlink(runsc, filepath.Join(dir, "runsc")))
	return path
}

// Main runs the tests of a package and returns the exit code for TestMain. If this process is an impostor or has another role, Main acts as it.
func Main(m *testing.M) int {
	if play(os.Args) { // an attack may see no /proc
		return 0
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	runsc, args := filepath.Join(filepath.Dir(self), "runsc"), slices.Clone(os.Args)
	flag := func(arg string) string { return strings.TrimLeft(arg, "-") }
	switch filepath.Base(self) {
	case withoutKVM:
		for i, arg := range args {
			if flag(arg) == "platform=kvm" {
				args[i] = "--platform=systrap"
			}
		}
	case silentExec:
		if slices.Contains(args, "exec") && slices.ContainsFunc(args, func(arg string) bool { return flag(arg) == "detach" }) {
			if code := call(runsc, args); code != 0 {
				return code
			}
			return 128 // as runsc
		}
	default:
		return m.Run()
	}
	panic(unix.Exec(runsc, args, process.Environment())) // it returns only after a failure
}

// call runs a program with the standard streams of this one, and returns its exit code.
func call(program string, args []string) int {
	p, err := os.StartProcess(program, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		panic(err)
	}
	state, err := p.Wait()
	if err != nil {
		panic(err)
	}
	return state.ExitCode()
}

// SilentExec checks that the error of an exec has the known cause if runsc gives no reason. The engine must execute by `runsc exec --detach`,
// and must be private or none. TestMain must call Main.
func SilentExec(t *testing.T, d Opener, name string, s engine.Session) {
	t.Helper()
	e := Open(t, d, impostor(t, &s, name, silentExec), s)
	c := Running(t, e, Spec(s, "silent"))
	_, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: probe.Exit(0)})
	var silentErr *runtimes.SilentExecError
	if !errors.As(err, &silentErr) || !strings.Contains(err.Error(), "gVisor gave no reason") {
		t.Errorf("Exec with a runsc that fails without a reason = %v; want the known cause", err)
	}
	_, err = c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/no-such-program"}})
	if err == nil || errors.As(err, &silentErr) {
		t.Errorf("Exec of a missing program = %v; want the reason of runsc", err)
	}
}
