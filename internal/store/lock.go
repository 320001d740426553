package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// ErrUnderWay is in the error for a run that another process executes.
var ErrUnderWay = errors.New("it is under way in another process")

// This file keeps the fact whether a process executes a run. From Create or Resume until Finish or Close the store holds a
// lock on a file beside the results file. The kernel drops the lock when the process ends, however it ends. The
// lock is not in the directories of internal/workdir: fake targets have none, another user has others,
// and a container that shares the results folder does not share them.
//
// The locks are open file description locks: a reader can query them without taking one.

// lockFile is the lock file of a run, beside the results file with links resolved.
func (s *Store) lockFile(runID string) (string, error) {
	name, err := locate(s.path)
	return name + "-" + runID + ".lock", err
}

// lock takes the lock of a run, unless this store has it. ErrUnderWay if another process, or another Store, has it.
func (s *Store) lock(runID string) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[runID] != nil {
		return false, nil
	}
	path, err := s.lockFile(runID)
	if err != nil {
		return false, err
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return false, fmt.Errorf("lock the run: %w", err)
		}
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
			return false, errors.Join(ErrUnderWay, f.Close())
		case err != nil && !isUnsupported(err) && !errors.Is(err, unix.ENOLCK): // the kernel, or the file system, has no such locks
			return false, errors.Join(fmt.Errorf("lock the run: %w", err), f.Close())
		}
		var stat unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &stat); err == nil && stat.Nlink == 0 {
			_ = f.Close() // the previous owner removed the file before this process locked it
			continue
		}
		s.locks[runID] = f
		return true, nil
	}
}

// hasLocks reports whether this store has the lock of a run.
func (s *Store) hasLocks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.locks) > 0
}

// unlock drops the lock of a run, if this store has it.
func (s *Store) unlock(runID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.locks[runID]
	if f == nil {
		return nil
	}
	delete(s.locks, runID)
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// removeStaleLocks removes the lock files of killed runs. Its caller has the write lock of the results file, so that no other process
// takes a run's lock meanwhile: see writeLocked. A file that cannot be removed does no harm.
func (s *Store) removeStaleLocks() {
	name, err := locate(s.path)
	if err != nil {
		return
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return
	}
	prefix := filepath.Base(name) + "-"
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), ".lock") || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > 0 { // not ours: a lock file is empty
			continue
		}
		path := filepath.Join(filepath.Dir(name), e.Name())
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) == nil {
			_ = os.Remove(path)
		}
		_ = f.Close()
	}
}

// locked reports whether a process executes a run. Without permission to look, or on a kernel without such locks, it
// is true if the lock file exists.
func (s *Store) locked(runID string) bool {
	path, err := s.lockFile(runID)
	if err != nil {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // another user may have put a link or a pipe there
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return true
	}
	return lock.Type != unix.F_UNLCK
}

// stale reports whether a run is recorded as running and no process executes it.
func (s *Store) stale(runID string, state result.State) bool {
	return state == result.Running && !s.locked(runID)
}

// staleState is the state of a stale run: an imported run was under way when it was exported, and its other trials
// are not here; any other run was killed.
func staleState(isImport bool) result.State {
	if isImport {
		return result.Interrupted
	}
	return result.Killed
}
