// Package filelock lets processes use a file or a directory in turn, by locks of the kernel (flock).
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// pause is the time between two attempts to get a lock.
const pause = 50 * time.Millisecond

// ErrLocked reports that another process has the lock.
var ErrLocked = errors.New("another process uses it")

// Lock is a lock until Release or the end of the process. It is a plain descriptor, because the finalizer of an os.File would release the
// lock.
type Lock int

// Mode is the number of processes that may have a lock at once.
type Mode int

// The modes.
const (
	Exclusive Mode = unix.LOCK_EX
	Shared    Mode = unix.LOCK_SH
)

// Kind is the kind of the object that is locked.
type Kind int

// The kinds.
const (
	File      Kind = unix.O_CREAT // a missing file is created
	Directory Kind = unix.O_DIRECTORY
)

// Try locks a file or a directory, or returns ErrLocked. If the object is removed meanwhile, the error is fs.ErrNotExist.
func Try(path string, kind Kind, mode Mode) (Lock, error) {
	fd, err := unix.Open(path, int(kind)|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	l := Lock(fd)
	err = l.Convert(mode)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	var stat unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &stat)
	}
	if err == nil && stat.Nlink == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		l.Release()
		return 0, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
	}
	return l, nil
}

// Wait waits for a lock. It calls wait once if it must wait; wait may be nil.
func Wait(ctx context.Context, path string, kind Kind, mode Mode, wait func()) (Lock, error) {
	l, err := Try(path, kind, mode)
	if !errors.Is(err, ErrLocked) {
		return l, err
	}
	if wait != nil {
		wait()
	}
	for errors.Is(err, ErrLocked) {
		if err := Pause(ctx); err != nil {
			return 0, err
		}
		l, err = Try(path, kind, mode)
	}
	return l, err
}

// Pause waits before the next attempt to get a lock: the kernel sends no event to a caller that also waits for a context.
func Pause(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Convert changes the mode of a lock, without waiting. The error is EWOULDBLOCK if another process has a lock that excludes the mode.
func (l Lock) Convert(mode Mode) error {
	for {
		err := unix.Flock(int(l), int(mode)|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Release ends the lock.
func (l Lock) Release() { _ = unix.Close(int(l)) }
