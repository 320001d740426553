package runtimes

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// SilentExecError is an exec that gVisor failed without a reason. The program may have run.
//
// containerd, CRI-O, Docker and Podman execute by `runsc exec --detach`. This runsc starts a second one for the program, and waits for it: it
// looks for the second one's PID file, and then whether the second one has exited. If the program starts and ends between these two looks,
// runsc exits with code 128 and writes nothing. The looks are microseconds apart, so the first runsc must lose its CPU between them.
type SilentExecError struct{ Err error }

func (e *SilentExecError) Error() string {
	return e.Err.Error() + "; gVisor gave no reason: it fails so, too, if a short program ends before runsc has seen its start (see Exec in docs/runtimes.md)"
}

func (e *SilentExecError) Unwrap() error { return e.Err }

// silentExecs are the words of the engines for an exec that failed without a reason.
var silentExecs = []string{
	"command error: EOF, stdout: , stderr: ,", // CRI-O: conmon has sent nothing
	"did not terminate successfully",          // containerd and Docker, by all shims
	"no logs from conmon",                     // Podman
}

// ExplainExec adds the known cause to an engine's error of an exec in a container with this isolation.
func ExplainExec(i engine.Isolation, err error) error {
	match := func(words string) bool { return strings.Contains(err.Error(), words) }
	if i != engine.UserKernel || !slices.ContainsFunc(silentExecs, match) {
		return err
	}
	return &SilentExecError{err}
}
