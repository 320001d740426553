package store

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The kinds of faults of a results file. A *FileError has one of them.
var (
	// ErrForeign: the file is not one of Touchstone's. It stays unchanged.
	ErrForeign = errors.New("not a results file of Touchstone")
	// ErrEmpty: the file has no run yet, as after the kill of its first run.
	ErrEmpty = errors.New("it has no run yet")
	// ErrVersion: another version of Touchstone wrote the file. It stays unchanged.
	ErrVersion = errors.New("another version of touchstone wrote it")
	// ErrAltered: another program changed the tables of the file, or added some.
	ErrAltered = errors.New("another program changed its tables")
	// ErrDamaged: SQLite cannot read the file.
	ErrDamaged = errors.New("damaged, or not a SQLite database")
	// ErrChanged: another process changed recorded trials during a read.
	ErrChanged = errors.New("it changed during the read")
	// ErrBusy: another process has the write lock for longer than the timeout.
	ErrBusy = errors.New("another process is writing to it")
	// ErrFull: no space is left on the disk. Earlier commits are intact.
	ErrFull = errors.New("the disk is full")
	// ErrUntrusted: another user can change the file or its folder. It stays unchanged.
	ErrUntrusted = errors.New("another user can change it")
	// ErrNotWritable: the file or its folder is not writable.
	ErrNotWritable = errors.New("not writable")
	// ErrPlace: the file system lacks something that the file needs.
	ErrPlace = errors.New("its file system cannot hold it")
)

// ErrExists is in the error for a run whose id is already recorded, or for a trial with a recorded Seq.
var ErrExists = errors.New("already recorded")

const (
	foreignAdvice = "give a file that touchstone wrote, or a new name"
	emptyAdvice   = "start a run with touchstone benchmark, which fills it"
	alteredAdvice = "do not trust the file; if the change is yours, undo it with sqlite3 (DROP VIEW, DROP INDEX, …)"
	placeAdvice   = "use a folder on a local file system with -d, and copy the results afterwards"
	damagedAdvice = "no run can be exported from it; move it and the files beside it (-wal, -shm) away and start with a new file"
)

// FileError is a fault of a results file, with a remedy.
type FileError struct {
	Path string
	// Kind is ErrForeign, ErrVersion, ….
	Kind error
	// Err is the error of SQLite or of the system.
	Err    error
	Advice string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("results file %q: %v (%v); %s", e.Path, e.Kind, e.Err, e.Advice)
}

// Unwrap returns Kind and Err.
func (e *FileError) Unwrap() []error { return []error{e.Kind, e.Err} }

// listed is the maximum number of ids in the message of an IDError.
const listed = 10

// IDError is the error for a reference that matches no run, or several runs.
type IDError struct {
	Ref string
	// Ambiguous is set if several runs match; Candidates are these runs. Otherwise no run matches, and Candidates are all runs. The
	// newest is first.
	Ambiguous  bool
	Candidates []string
}

func (e *IDError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("run %q: the file has no runs", e.Ref)
	}
	head := e.Candidates[:min(listed, len(e.Candidates))]
	names := strings.Join(head, ", ")
	if rest := len(e.Candidates) - len(head); rest > 0 {
		names += fmt.Sprintf(" and %d more", rest)
	}
	if e.Ambiguous {
		return fmt.Sprintf("run %q: %d ids begin with it: %s; give more characters of the id", e.Ref, len(e.Candidates), names)
	}
	return fmt.Sprintf("run %q: no such run; the runs are %s; give an id, the beginning of an id, or %q", e.Ref, names, Latest)
}

// code returns the extended result code of SQLite, or 0 for other errors.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// primary returns the part of a result code for the kind of error; the other part is its location.
func primary(code int) int { return code & 0xff }

func isBusy(err error) bool {
	c := primary(code(err))
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isTaken reports whether a row with the same key exists already.
func isTaken(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CONSTRAINT_UNIQUE || c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// explain converts SQLite's errors about the file to a *FileError.
func (s *Store) explain(err error) error {
	var file *FileError
	if err == nil || errors.As(err, &file) {
		return err
	}
	e := &FileError{Path: s.path, Err: err}
	c := code(err)
	switch {
	case errors.Is(err, errRows):
		e.Kind, e.Advice = ErrDamaged, damagedAdvice
	case c == 0:
		return err
	case isBusy(err):
		e.Kind, e.Advice = ErrBusy, fmt.Sprintf("retry after it has finished; fuser -v %q shows the processes that have the file open", s.path)
	case c == sqlite3.SQLITE_IOERR_SHORT_READ:
		e.Kind, e.Advice = ErrDamaged, damagedAdvice
	case primary(c) == sqlite3.SQLITE_IOERR:
		e.Kind, e.Advice = ErrPlace, placeAdvice+"; dmesg and quota may name the cause"
	default:
		switch primary(c) {
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			e.Kind, e.Advice = ErrDamaged, damagedAdvice
		case sqlite3.SQLITE_FULL:
			e.Kind, e.Advice = ErrFull, "free some space; earlier trials are intact"
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			e.Kind, e.Advice = ErrNotWritable, "check the permissions of the file and its folder, or copy the file and the files beside it (-wal, -shm) to a writable folder"
		default:
			return fmt.Errorf("results file %q: %w", s.path, err)
		}
	}
	return e
}
