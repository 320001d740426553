package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file opens results files on file systems that lack something. Shared memory is missing on 9p, virtiofs, vboxsf and drvfs: there
// the file has a rollback journal in place of the write-ahead log. A file system that cannot synchronise is trusted to keep what it
// has. Without POSIX locks two writers would destroy the file, so it is refused.

// place holds the abilities of a file system.
type place struct{ sharedMemory, sync bool }

// errNoSharedMemory is the error of a file system that cannot share memory between processes.
var errNoSharedMemory = errors.New("the file system has no shared memory")

// Extended codes of SQLite for a fault of shared memory, of synchronisation and of locks.
var (
	sharedMemoryCodes = []int{sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMLOCK}
	syncCodes         = []int{sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
	lockCodes         = []int{sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK}
)

// openWriter opens a trusted file for writing, in a way that its file system allows.
func openWriter(ctx context.Context, path, name string, size int) (*Store, error) {
	p := place{sharedMemory: true, sync: true}
	for {
		s, err := p.open(ctx, path, name, size)
		switch {
		case err == nil:
			return s, nil
		case p.sharedMemory && lacksSharedMemory(err):
			p.sharedMemory = false
			if err := dropLog(ctx, path, name); err != nil {
				return nil, err
			}
		case p.sync && cannotSync(name, err):
			p.sync = false
		default:
			return nil, diagnoseLocks(path, name, err)
		}
	}
}

// open opens the file, and exercises what it relies on: a fault must appear before a measurement.
func (p place) open(ctx context.Context, path, name string, size int) (*Store, error) {
	mode := "NORMAL" // see flush
	switch {
	case !p.sync:
		mode = "OFF"
	case !p.sharedMemory:
		mode = "FULL"
	}
	s, err := connect(path, dsn(name, "mode=rw", "_txlock=immediate", fmt.Sprintf("_pragma=synchronous(%s)", mode),
		"_pragma=foreign_keys(0)", // each row gets a key of its own transaction, so a check would find nothing
		fmt.Sprintf("_pragma=page_size(%d)", size), fmt.Sprintf("_pragma=wal_autocheckpoint(%d)", logPages)))
	if err != nil {
		return nil, err
	}
	return s.ready(func() error {
		if err := s.migrate(ctx); err != nil || !p.sharedMemory {
			return err
		}
		if err := s.checkSharedMemory(ctx, name); err != nil {
			return err
		}
		if err := s.setJournal(ctx, "wal"); err != nil {
			return err
		}
		if _, err := s.stamp(ctx); err != nil {
			return err
		}
		if p.sync {
			s.log = name + "-wal"
		}
		return s.flush()
	})
}

// checkSharedMemory maps the file that the write-ahead mode would share, unless the results file has that mode already. A switch to the mode
// would lock out a process that has the file open with a rollback journal, so it must be known to work.
func (s *Store) checkSharedMemory(ctx context.Context, name string) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode == "wal" {
		return err
	}
	// With this lock no process switches the mode, and so none uses the shared file.
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, end)
	}()
	if err := mapShared(name + "-shm"); err != nil {
		return fmt.Errorf("%w: %w", errNoSharedMemory, err)
	}
	return nil
}

// mapShared makes a file, maps it like SQLite, and removes it.
func mapShared(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return err
	}
	const size = 32 << 10 // of SQLite's regions
	err = f.Truncate(size)
	if err == nil {
		var memory []byte
		if memory, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			err = unix.Munmap(memory)
		}
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

// dropLog changes a file from write-ahead mode to a rollback journal, without shared memory: a process that has the file alone needs none. The
// log's content moves to the file.
func dropLog(ctx context.Context, path, name string) error {
	return retryBusy(ctx, path, func() error {
		s, err := connect(path, dsn(name, "mode=rw", "_pragma=locking_mode(EXCLUSIVE)"))
		if err != nil {
			return err
		}
		s.db.SetMaxOpenConns(1)
		var mode string
		err = s.explain(s.db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode))
		if err == nil && mode != "delete" {
			err = fmt.Errorf("switch results file %q to a rollback journal: SQLite stays in mode %q", path, mode)
		}
		if err == nil {
			err = removeIfThere(name + "-shm")
		}
		return errors.Join(err, s.Close())
	})
}

// setJournal switches the journal mode, which is permanent.
func (s *Store) setJournal(ctx context.Context, mode string) error {
	return retryBusy(ctx, s.path, func() error {
		var answer string
		err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = "+mode).Scan(&answer)
		if err == nil && answer != mode {
			return fmt.Errorf("switch results file %q to journal mode %q: SQLite stays in mode %q", s.path, mode, answer)
		}
		return err
	})
}

// retryBusy repeats a switch of the journal mode while another process uses the file. For the switch SQLite raises a read lock to an
// exclusive lock. If another process has the write lock, SQLite does not wait, because both processes might wait for each other, but reports
// a busy file immediately.
func retryBusy(ctx context.Context, path string, do func() error) error {
	defer noticeWait(ctx, path)()
	pause := time.NewTicker(busyPause)
	defer pause.Stop()
	for tries := busyTimeout / busyPause; ; tries-- {
		err := do()
		if err == nil || !isBusy(err) || tries == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lacksSharedMemory reports whether an error comes from the file that processes share in write-ahead mode.
func lacksSharedMemory(err error) bool {
	return errors.Is(err, errNoSharedMemory) || slices.Contains(sharedMemoryCodes, code(err))
}

// unsupported are the errors of system calls that a file system does not implement.
var unsupported = []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOTTY}

func isUnsupported(err error) bool {
	return slices.ContainsFunc(unsupported, func(no error) bool { return errors.Is(err, no) })
}

// cannotSync reports whether an error comes from a file system that does not implement fsync. SQLite has one code for it and for a
// failure of the disk, so a new file decides.
func cannotSync(name string, err error) bool {
	var file *fs.PathError
	if errors.As(err, &file) && file.Op == "fdatasync" {
		return isUnsupported(file.Err)
	}
	if !slices.Contains(syncCodes, code(err)) {
		return false
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".touchstone-*")
	if err != nil {
		return false
	}
	err = unix.Fdatasync(int(f.Fd()))
	_, _ = f.Close(), os.Remove(f.Name())
	return isUnsupported(err)
}

// checkLocks reports whether a file can be locked. This process must have no locks on the file, because a close of f drops them.
func checkLocks(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
	if err == nil {
		lock.Type = unix.F_UNLCK
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) { // another process has the lock
		return nil
	}
	return err
}

// diagnoseLocks explains an error that may come from missing locks: SQLite takes some of these errors for the lock of another process.
func diagnoseLocks(path, name string, err error) error {
	if !slices.Contains(lockCodes, code(err)) && !isBusy(err) {
		return err
	}
	f, openErr := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if openErr != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if fault := checkLocks(f); fault != nil {
		return noLocks(path, fault)
	}
	return err
}

func noLocks(path string, err error) error {
	return &FileError{
		Path: path, Kind: ErrPlace, Err: fmt.Errorf("its file system has no locks, and two writers would destroy the file: %w", err), Advice: placeAdvice,
	}
}

// createError explains why a file cannot be made.
func createError(path string, err error) error {
	e := &FileError{Path: path, Kind: ErrNotWritable, Err: err, Advice: "give an existing folder with write permission"}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		e.Kind, e.Advice = ErrFull, "free some space or some files, or use another folder with -d"
	case errors.Is(err, unix.EROFS):
		e.Advice = "use a folder on a writable file system with -d"
	case isUnsupported(err):
		e.Kind, e.Advice = ErrPlace, placeAdvice
	}
	return e
}

// diagnoseModes explains ErrUntrusted for a file system whose files have the mode and the owner of the mount, such as vfat or drvfs.
func diagnoseModes(dir string, err error) error {
	var file *FileError
	if errors.As(err, &file) && errors.Is(err, ErrUntrusted) && !keepsModes(nearest(dir)) {
		file.Err = fmt.Errorf("%w, and its file system keeps no modes and owners", file.Err)
		file.Advice = "use a folder on a file system of Linux with -d; chmod has no effect here"
	}
	return err
}

// keepsModes reports whether files of a folder keep their mode and owner, judged by a new file. It is true if no file can be made.
func keepsModes(dir string) bool {
	f, err := os.CreateTemp(dir, ".touchstone-*") // with mode 0600
	if err != nil {
		return true
	}
	var s unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &s)
	_ = f.Close()
	_ = os.Remove(f.Name())
	return err != nil || s.Mode&0o022 == 0 && int(s.Uid) == os.Geteuid()
}

// removeNew removes a file that this process has just made and cannot use, with the files of SQLite beside it.
func removeNew(name string) {
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		_ = os.Remove(name + suffix)
	}
}

// nearest is the deepest existing folder on a path.
func nearest(path string) string {
	for {
		info, err := os.Stat(path)
		parent := filepath.Dir(path)
		if err == nil && info.IsDir() || parent == path {
			return path
		}
		path = parent
	}
}
