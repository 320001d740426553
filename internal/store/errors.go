package store

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with a results file. A *FileError has one of them.
var (
	// ErrForeign: it is a file, but not one of Touchstone's. It is left as it is.
	ErrForeign = errors.New("it is not a results file of Touchstone")
	// ErrNewer: a newer touchstone wrote it. It is left as it is.
	ErrNewer = errors.New("a newer touchstone wrote it")
	// ErrDamaged: SQLite cannot make sense of it.
	ErrDamaged = errors.New("it is damaged, or not a SQLite database")
	// ErrBusy: another process has been writing for longer than the time limit.
	ErrBusy = errors.New("another process is writing to it")
	// ErrFull: there is no space left. What was committed before is intact.
	ErrFull = errors.New("the disk is full")
	// ErrNotWritable: the file or its folder cannot be written.
	ErrNotWritable = errors.New("it cannot be opened for writing")
)

// ErrExists is in the error for a run whose id, or a trial whose place in the run,
// is taken.
var ErrExists = errors.New("it is recorded already")

const (
	foreignAdvice = "name a file that touchstone wrote, or one that does not exist yet"
	damagedAdvice = "nothing can be exported from it; move it and the files beside it (-wal, -shm) away and start with a new file"
)

// FileError says what is wrong with a results file and what to do about it.
type FileError struct {
	Path string
	// Kind is ErrForeign, ErrNewer, ….
	Kind error
	// Err is what SQLite or the system says.
	Err    error
	Advice string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("results file %q: %v (%v); %s", e.Path, e.Kind, e.Err, e.Advice)
}

// Unwrap gives Kind and Err.
func (e *FileError) Unwrap() []error { return []error{e.Kind, e.Err} }

// listed bounds the ids in the message of an IDError.
const listed = 10

// IDError says that a reference names no run, or more than one.
type IDError struct {
	Ref string
	// Ambiguous tells that several runs match, those in Candidates. Otherwise none
	// does, and Candidates are all runs. The newest is the first.
	Ambiguous  bool
	Candidates []string
}

func (e *IDError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("run %q: there are no runs in the file", e.Ref)
	}
	shown := e.Candidates[:min(listed, len(e.Candidates))]
	names := strings.Join(shown, ", ")
	if more := len(e.Candidates) - len(shown); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if e.Ambiguous {
		return fmt.Sprintf("run %q: %d runs begin with it: %s; give more of the id", e.Ref, len(e.Candidates), names)
	}
	return fmt.Sprintf("run %q: there is no such run; there are %s; give an id, the beginning of one, or %q", e.Ref, names, Latest)
}

// code gives SQLite's extended result code, 0 if err is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// primary is the part of a result code that says what went wrong; the rest says
// where.
func primary(code int) int { return code & 0xff }

func isBusy(err error) bool {
	c := primary(code(err))
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isTaken tells whether err says that a row with the same key is there.
func isTaken(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CONSTRAINT_UNIQUE || c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// explain makes a *FileError of an error of SQLite that is about the file.
func (s *Store) explain(err error) error {
	var file *FileError
	if err == nil || errors.As(err, &file) {
		return err
	}
	e := &FileError{Path: s.path, Err: err}
	c := code(err)
	switch {
	case c == 0:
		return err
	case isBusy(err):
		e.Kind, e.Advice = ErrBusy, "try again when it has finished"
	case c == sqlite3.SQLITE_IOERR_SHORT_READ:
		e.Kind, e.Advice = ErrDamaged, damagedAdvice
	default:
		switch primary(c) {
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			e.Kind, e.Advice = ErrDamaged, damagedAdvice
		case sqlite3.SQLITE_FULL:
			e.Kind, e.Advice = ErrFull, "free some space; what was recorded before is intact"
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			e.Kind, e.Advice = ErrNotWritable, "check that you may write to the file and to its folder, or copy the file and those beside it (-wal, -shm) to such a folder"
		default:
			return fmt.Errorf("results file %q: %w", s.path, err)
		}
	}
	return e
}
