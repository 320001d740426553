package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// Exit code 2 is for a wrong call, and never for the state of a machine, wherever an error was declared to be about the call.
//
// Invariant exit-code-2: Exit code 2 is for a call or a plan that must change, and never for an error of the system or of a results file.
func TestExitCodeOfMachine(t *testing.T) {
	path := func(errno error) error { return &fs.PathError{Op: "open", Path: "plan.yaml", Err: errno} }
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"a missing file that the call names": {usage(path(unix.ENOENT)), ExitUsage},
		"a folder in place of a file":        {usage(path(unix.EISDIR)), ExitUsage},
		"a name below a file":                {usage(path(unix.ENOTDIR)), ExitUsage},
		"a wrong flag":                       {usage(errors.New("unknown flag")), ExitUsage},
		"an error of a plan":                 {&plan.Error{}, ExitUsage},
		"an unknown run":                     {&store.IDError{Ref: "x"}, ExitUsage},
		"a wrong request":                    {&execution.UsageError{Err: errors.New("x")}, ExitUsage},

		"no permission":                 {usage(path(unix.EACCES)), ExitFailure},
		"a broken disk":                 {usage(path(unix.EIO)), ExitFailure},
		"a refused call":                {usage(os.NewSyscallError("unshare", unix.EPERM)), ExitFailure},
		"no network":                    {usage(os.NewSyscallError("connect", unix.ECONNREFUSED)), ExitFailure},
		"beside an error of a plan":     {errors.Join(&plan.Error{}, path(unix.EIO)), ExitFailure},
		"no CPUs to be found":           {usage(&execution.MachineError{Err: path(unix.ENOENT)}), ExitFailure},
		"a single target that works":    {&execution.MachineError{Err: errors.New("x")}, ExitFailure},
		"a results file of others":      {usage(fmt.Errorf("x: %w", &store.FileError{Kind: store.ErrUntrusted, Err: errors.New("x")})), ExitFailure},
		"a results file in a bad place": {&store.FileError{Kind: store.ErrPlace, Err: unix.ENOLCK}, ExitFailure},

		"a file of another user": {usage(fmt.Errorf("x: %w", &trust.Error{Path: "x"})), ExitFailure},

		"an interrupted call":      {usage(context.Canceled), ExitInterrupted},
		"failed trials":            {&exitError{code: ExitTrials}, ExitTrials},
		"no target":                {&exitError{code: ExitNoTarget, err: path(unix.EACCES)}, ExitNoTarget},
		"an unknown kind of error": {errors.New("x"), ExitFailure},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("%s: the exit code is %d, want %d", name, got, c.want)
		}
	}
}
