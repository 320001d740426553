package store

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// applicationID marks a SQLite file as Touchstone's; the migration sets it. It reads "TSTN".
const applicationID = 0x5453544E

// busyTimeout is the maximum time a statement waits for the write lock of another process. Our transactions hold the lock for
// milliseconds.
const busyTimeout = 10 * time.Second

// busyPause is the time between two tries where SQLite itself does not wait.
const busyPause = 20 * time.Millisecond

// fileVersion is the version of the file format, in PRAGMA user_version.
const fileVersion = 1

// migration makes version 1 in an empty file.
//
//go:embed migrations/0001_runs.sql
var migration string

// stamp is the identification of a SQLite file.
type stamp struct {
	application int64
	version     int
	// foreign is the first table, index, … that the migration does not make; empty without one. It is only read if the application and the
	// version are known, or if the application is 0.
	foreign string
}

// empty reports whether the file has no content yet.
func (s stamp) empty() bool { return s == stamp{} }

// readStamp is the first query of each transaction that reads, and of each that may make its tables.
func readStamp(ctx context.Context, tx *transaction) (stamp, error) {
	var s stamp
	if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&s.application); err != nil {
		return stamp{}, err
	}
	var err error
	if s.version, err = readVersion(ctx, tx); err != nil {
		return stamp{}, err
	}
	switch {
	case s.application == 0:
		s.foreign, err = foreignObject(ctx, tx, nil)
	case s.application == applicationID && s.version == fileVersion:
		s.foreign, err = foreignObject(ctx, tx, schema())
	}
	return s, err
}

// readVersion returns the version of the file format.
func readVersion(ctx context.Context, tx *transaction) (version int, err error) {
	err = tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// admit refuses a file that is not Touchstone's, that has another version, or that has other tables than the migration makes.
func (s stamp) admit(path string) error {
	switch {
	case s.empty():
		return nil
	case s.application != applicationID:
		return &FileError{Path: path, Kind: ErrForeign, Err: errors.New("it is a SQLite database of another program"), Advice: foreignAdvice}
	case s.version != fileVersion:
		return &FileError{
			Path: path, Kind: ErrVersion, Advice: result.VersionAdvice,
			Err: fmt.Errorf("the file has version %d and this touchstone knows %d", s.version, fileVersion),
		}
	case s.foreign != "":
		return &FileError{Path: path, Kind: ErrAltered, Err: fmt.Errorf("touchstone makes no such %s in version %d", s.foreign, fileVersion), Advice: alteredAdvice}
	}
	return nil
}

// stamp returns the identification of the file, or the error of admit.
func (s *Store) stamp(ctx context.Context) (found stamp, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		found = tx.stamp
		return nil
	})
	return found, err
}

// peek refuses the file called name if admit does, and leaves no trace: SQLite opens the file as immutable, without locks and
// without repairs. It ignores content that is only in a log. If a log exists, apparent damage can come from a kill during a
// checkpoint, and the log repairs it. migrate and readable then check the file again.
func peek(ctx context.Context, path, name string) error {
	s, err := connect(path, dsn(name, "mode=ro", "immutable=1"))
	if err != nil {
		return err
	}
	err = s.explain(s.read(ctx, func(*transaction) error { return nil }))
	err = errors.Join(err, s.Close())
	if (errors.Is(err, ErrDamaged) || errors.Is(err, ErrAltered)) && !settled(name) {
		return nil
	}
	return err
}

// migrate makes the tables in an empty file, in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	// Most files have their tables and need no lock.
	if found, err := s.stamp(ctx); err != nil || !found.empty() {
		return err
	}
	// The log need not be flushed: a new file has none yet, and a lost migration is repeated.
	return s.transact(ctx, func(tx *transaction) error {
		found, err := readStamp(ctx, tx)
		if err != nil {
			return err
		}
		if err := found.admit(s.path); err != nil || !found.empty() {
			return err
		}
		// A PRAGMA takes no parameters. The version is our own number.
		_, err = tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA user_version = %d", migration, fileVersion))
		return err
	})
}

// readable refuses a file without tables.
func (s *Store) readable(ctx context.Context) error {
	found, err := s.stamp(ctx)
	if err == nil && found.empty() {
		err = &FileError{Path: s.path, Kind: ErrEmpty, Err: errors.New("it is empty"), Advice: emptyAdvice}
	}
	return err
}

// dsn is the data source name of a file with an absolute path. Each parameter is name=value, a parameter of SQLite's URI or of the
// driver.
func dsn(name string, parameters ...string) string {
	query := url.Values{}
	for _, p := range append(parameters,
		fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout.Milliseconds()),
		"_pragma=cell_size_check(1)", // detect damage early
		"_pragma=trusted_schema(0)",  // the file is untrusted
		"_defensive=1",
		"_dqs=0",
		"_error_rc=1",
	) {
		key, value, _ := strings.Cut(p, "=")
		query.Add(key, value)
	}
	return (&url.URL{Scheme: "file", Path: name, RawQuery: query.Encode()}).String()
}
