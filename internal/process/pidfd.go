package process

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// OpenPidfd opens a pidfd in Go's poller. The error is os.ErrProcessDone if the process has been reaped, and a *refusal.Error if this
// process has no pidfds.
func OpenPidfd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, os.ErrProcessDone
	case refusal.Refused(err):
		return nil, refusal.SystemCall("pidfd_open", "5.3", err)
	case err != nil:
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// Package os polls only nonblocking descriptors. Kernels before 5.10 have no PIDFD_NONBLOCK.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// pidfdRefusal returns the reason why this process cannot wait for pidfds, as Linux 5.3 and later lets it; nil if it can.
func pidfdRefusal() error {
	pidfd, err := OpenPidfd(os.Getpid())
	if err != nil {
		return err
	}
	defer func() { _ = pidfd.Close() }()
	return pidfd.SetDeadline(time.Time{})
}
