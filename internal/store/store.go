// Package store keeps runs in one SQLite file.
//
// A trial is committed and on the disk when Append returns. A kill or a power cut at any moment loses at most the current trial,
// and the run can be resumed. The file is in write-ahead mode, so reports work during a run, and several processes may use the file
// at once.
//
// Samples and phases are rows, for queries with the sqlite3 program. Facts that are always read whole (host, targets, benchmarks)
// are JSON columns with the spelling of `touchstone export`. The file format has a version (PRAGMA user_version).
//
// The package refuses a file that is not Touchstone's, that is damaged, that has another version, or whose tables another program
// changed, and leaves it unchanged.
// It refuses runs and trials that result.Run.Validate refuses: a value that is not a number never becomes a row.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// fileMode is the mode of the file and of SQLite's files beside it (-wal, -shm, -journal), which inherit the mode of the database.
const fileMode fs.FileMode = 0o600

// connections is the size of the pool: one writer and several readers.
const connections = 4

// These values keep the disk writes of a trial small. On a board the file may be on a card that wears out, and a commit writes
// each changed page whole: a trial has about 2 KB, in five tables and indices. See also flush.
const (
	// pageSize is the page size of a new file in bytes, a quarter of SQLite's default. An existing file keeps its page size.
	pageSize = 1024
	// manyPageSize is the page size of a file for many runs at the same time. Their trials share commits, which fill larger pages, so a quarter of the
	// calls to write them is left.
	manyPageSize = 4096
	// logPages is the length of the log at which its content moves to the file, and the log starts again. It is a fifth of SQLite's
	// default: to overwrite the old log is cheaper for a file system than to append, which it must record in its own journal.
	logPages = 200
)

// Store is an open results file. Its methods are safe for concurrent use. All of them obey their context; a write whose context
// ends before the commit leaves no trace.
type Store struct {
	path string
	log  string // the write-ahead log, by its absolute name; empty if SQLite flushes, or the file system cannot
	db   *sql.DB

	// turn has a value while a caller writes. See write.
	turn chan struct{}
	// facts has the targets and the benchmarks of the run with the newest trial or trace. Only the writer uses it.
	facts result.Run

	mu      sync.Mutex
	locks   map[string]*os.File // of the runs that this process executes, by ID
	waiting []*pending
}

// Open opens the results file at path for reading and writing. It creates a missing file with mode 0600 whatever the umask; an
// existing file keeps its mode. The folder must exist. Open refuses a file that another user can change (ErrUntrusted). Errors about the
// file are *FileError.
func Open(ctx context.Context, path string) (*Store, error) { return openFor(ctx, path, pageSize) }

// OpenMany is Open for many runs at the same time, as of a cluster. If the file is new, they take a tenth less processor time.
func OpenMany(ctx context.Context, path string) (*Store, error) {
	return openFor(ctx, path, manyPageSize)
}

func openFor(ctx context.Context, path string, size int) (*Store, error) {
	s, err := open(ctx, path, size)
	if err != nil {
		return nil, fmt.Errorf("open for writing: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, path string, size int) (*Store, error) {
	name, err := locate(path)
	isNew := false
	if errors.Is(err, fs.ErrNotExist) {
		if err := CheckFolder(filepath.Dir(path)); errors.Is(err, ErrUntrusted) {
			return nil, err
		}
		if isNew, err = create(path); err != nil {
			return nil, err
		}
		name, err = locate(path)
	}
	if err == nil {
		err = diagnoseModes(filepath.Dir(path), CheckTrust(path))
	}
	var s *Store
	if err == nil {
		err = peek(ctx, path, name)
	}
	if err == nil {
		s, err = openWriter(ctx, path, name, size)
	}
	if err != nil && isNew && !errors.Is(err, ErrBusy) && ctx.Err() == nil {
		removeNew(name)
	}
	return s, err
}

// OpenReadOnly opens the results file at path for reading; every write fails with ErrNotWritable. It also reads the write-ahead log
// of a killed process, except on a file system without shared memory, which is ErrPlace: only Open moves the log to the file. A file on a medium or in a folder without write permission is readable unless it has such a log. The same holds for a
// file that another user can change: see CheckTrust. Errors about the file are *FileError or have fs.ErrNotExist.
func OpenReadOnly(ctx context.Context, path string) (*Store, error) {
	s, err := openReadOnly(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open for reading: %w", err)
	}
	return s, nil
}

func openReadOnly(ctx context.Context, path string) (*Store, error) {
	name, err := locate(path)
	if err != nil {
		return nil, err
	}
	if err := peek(ctx, path, name); err != nil {
		return nil, err
	}
	// SQLite writes to the files beside an untrusted file only if it opens them.
	if err := CheckTrust(path); err != nil {
		if !settled(name) {
			return nil, err
		}
		return openImmutable(ctx, path, name)
	}
	// mode=ro would leave a -wal and a -shm behind, which only a writable connection removes. query_only prevents changes.
	s, err := connect(path, dsn(name, "mode=rw", "_query_only=1"))
	if err != nil {
		return nil, err
	}
	s, err = s.ready(func() error { return s.readable(ctx) })
	if lacksSharedMemory(err) && !settled(name) {
		// The log may be of a run on another machine that shares the directory. Only a writer moves it to the file.
		return nil, &FileError{
			Path: path, Kind: ErrPlace, Err: errors.New("it has a log of another place, and its file system has no memory that processes share"),
			Advice: "read it where it was written, or copy it with its -wal to a local file system",
		}
	}
	if err != nil && !lacksSharedMemory(err) {
		err = diagnoseLocks(path, name, err)
	}
	if !errors.Is(err, ErrNotWritable) && !errors.Is(err, ErrPlace) && !lacksSharedMemory(err) || !settled(name) {
		return s, err
	}
	return openImmutable(ctx, path, name)
}

// openImmutable opens a settled file without locks and without files beside it.
func openImmutable(ctx context.Context, path, name string) (*Store, error) {
	s, err := connect(path, dsn(name, "mode=ro", "immutable=1"))
	if err != nil {
		return nil, err
	}
	return s.ready(func() error { return s.readable(ctx) })
}

// CheckFolder refuses a folder for results that another user can change, with ErrUntrusted, and makes nothing. If the folder does not
// exist, CheckFolder checks the path to it, and the error is fs.ErrNotExist.
func CheckFolder(dir string) error {
	if _, err := trust.Directory(dir); err != nil {
		return diagnoseModes(dir, untrusted(dir, err))
	}
	return nil
}

// CheckTrust refuses a results file that another user can change, with ErrUntrusted: a plan from it must not be executed. The files of
// SQLite beside it count too.
func CheckTrust(path string) error {
	name, err := trust.File(path)
	if err != nil {
		return untrusted(path, err)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := trust.Entry(name + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return untrusted(path, err)
		}
	}
	return nil
}

// untrusted converts an error of trust.
func untrusted(path string, err error) error {
	var unsafe *trust.Error
	if !errors.As(err, &unsafe) {
		return fmt.Errorf("check the owner of results file %q: %w", path, err)
	}
	return &FileError{
		Path: path, Kind: ErrUntrusted, Err: fmt.Errorf("%s %s", unsafe.Path, unsafe.Problem),
		Advice: unsafe.Advice + ", or use another folder with -d (docs/ci.md: what to do in CI)",
	}
}

// Close closes the file. The store must not be used afterwards.
func (s *Store) Close() error {
	errs := []error{s.db.Close()}
	for _, runID := range slices.Collect(maps.Keys(s.locks)) {
		errs = append(errs, s.unlock(runID))
	}
	return s.explain(errors.Join(errs...))
}

// locate returns the absolute name of a regular file, with links resolved: SQLite keeps its other files beside the target of a
// link.
func locate(path string) (string, error) {
	name, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("locate results file %q: %w", path, err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", fmt.Errorf("find results file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", &FileError{Path: path, Kind: ErrForeign, Err: fmt.Errorf("not a regular file (%v)", info.Mode()), Advice: foreignAdvice}
	}
	name, err = filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("find results file: %w", err)
	}
	return name, nil
}

// create makes an empty file, which SQLite reads as an empty database. It accepts a file that another process created in the
// meantime, and reports whether it made one. It refuses a file system without locks.
//
// No other function opens the file without SQLite while the process uses it: to close any descriptor of a file drops all POSIX locks of
// the process on it, including SQLite's. This file is new and has no locks.
func create(path string) (isNew bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, createError(path, err)
	}
	// The umask may have removed bits. Some file systems have the modes of their mount: CheckTrust judges them.
	if err = f.Chmod(fileMode); errors.Is(err, unix.EPERM) || isUnsupported(err) {
		err = nil
	}
	if err != nil {
		err = createError(path, err)
	} else if fault := checkLocks(f); fault != nil {
		err = noLocks(path, fault)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(path))
	}
	return true, nil
}

// settled reports whether the file is complete without a log: no transaction is only in a log, and no interrupted transaction needs
// a rollback.
func settled(name string) bool {
	for _, suffix := range []string{"-wal", "-journal"} {
		info, err := os.Stat(name + suffix)
		if !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Size() > 0) {
			return false
		}
	}
	return true
}

// connect makes a store for a data source name. It opens nothing yet.
func connect(path, name string) (*Store, error) {
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, fmt.Errorf("open results file %q: %w", path, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return &Store{path: path, db: db, turn: make(chan struct{}, 1), locks: map[string]*os.File{}}, nil
}

// ready completes the opening of s with check, or closes s.
func (s *Store) ready(check func() error) (*Store, error) {
	if err := check(); err != nil {
		return nil, errors.Join(s.explain(err), s.Close())
	}
	return s, nil
}
