package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// errOlder is the error of current for a file of an earlier version.
var errOlder = errors.New("the file has an earlier version")

// applicationID marks a SQLite file as Touchstone's; migrations/0001_runs.sql sets it. It reads "TSTN".
const applicationID = 0x5453544E

// busyTimeout is the maximum time a statement waits for the write lock of another process. Our transactions hold the lock for
// milliseconds.
const busyTimeout = 10 * time.Second

// busyPause is the time between two tries where SQLite itself does not wait.
const busyPause = 20 * time.Millisecond

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations returns the scripts from version to version: the first creates version 1 in an empty file. Their number is the current
// version of the file format.
var migrations = sync.OnceValue(func() (scripts []string) {
	entries, err := migrationFiles.ReadDir("migrations")
	for _, e := range entries {
		var script []byte
		if script, err = migrationFiles.ReadFile("migrations/" + e.Name()); err != nil {
			break
		}
		scripts = append(scripts, string(script))
	}
	if err != nil {
		panic(fmt.Sprintf("a migration that is part of the program cannot be read: %v", err))
	}
	return scripts
})

// stamp is the identification of a SQLite file.
type stamp struct {
	application int64
	version     int
	// foreign is the first table, index, … that the migrations do not make in this version; empty without one. It is only read if the
	// application and the version are known, or if the application is 0.
	foreign string
}

// empty reports whether the file has no content yet.
func (s stamp) empty() bool { return s == stamp{} }

// readStamp is the first query of each transaction that reads, and of each that may upgrade the file.
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
		s.foreign, err = foreignObject(ctx, tx, 0)
	case s.application == applicationID && s.version >= 0 && s.version <= len(migrations()):
		s.foreign, err = foreignObject(ctx, tx, s.version)
	}
	return s, err
}

// readVersion returns the version of the file format.
func readVersion(ctx context.Context, tx *transaction) (version int, err error) {
	err = tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// admit refuses a file that is not Touchstone's, that is too new, or that has other tables than the migrations make.
func (s stamp) admit(path string) error {
	switch {
	case s.empty():
		return nil
	case s.application != applicationID || s.version < 0:
		return &FileError{Path: path, Kind: ErrForeign, Err: errors.New("it is a SQLite database of another program"), Advice: foreignAdvice}
	case s.version > len(migrations()):
		return &FileError{
			Path: path, Kind: ErrNewer, Advice: "use a newer touchstone",
			Err: fmt.Errorf("the file has version %d and this touchstone knows %d", s.version, len(migrations())),
		}
	case s.foreign != "":
		return &FileError{Path: path, Kind: ErrAltered, Err: fmt.Errorf("touchstone makes no such %s in version %d", s.foreign, s.version), Advice: alteredAdvice}
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
// checkpoint, and the log repairs it. migrate and current then check the file again.
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

// migrate brings the file to the current version, in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	scripts := migrations()
	// Most files are up to date and need no lock.
	if found, err := s.stamp(ctx); err != nil || found.application == applicationID && found.version == len(scripts) {
		return err
	}
	// The log need not be flushed: a new file has none yet, and a lost migration is repeated.
	return s.transact(ctx, func(tx *transaction) error {
		found, err := readStamp(ctx, tx)
		if err != nil {
			return err
		}
		if err := found.admit(s.path); err != nil {
			return err
		}
		for i := found.version; i < len(scripts); i++ {
			// A PRAGMA takes no parameters. The version is our own number.
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA user_version = %d", scripts[i], i+1)); err != nil {
				return fmt.Errorf("upgrade the file from version %d to %d: %w", i, i+1, err)
			}
		}
		return upgradeRuns(ctx, tx)
	})
}

// upgradeRuns brings all runs of the file to the current version of the result schema.
func upgradeRuns(ctx context.Context, tx *transaction) error {
	runs := map[int64]*result.Run{}
	err := each(ctx, tx, func(scan scan) error {
		var key int64
		var run result.Run
		err := scan(&key, document{&run.Targets}, document{&run.Bench})
		runs[key] = &run
		return err
	}, `SELECT key, targets, benchmarks FROM run`)
	if err != nil {
		return err
	}
	for key, run := range runs {
		renames := run.Upgrade()
		if _, err := tx.ExecContext(ctx, `UPDATE run SET targets = ?, benchmarks = ? WHERE key = ?`, document{&run.Targets}, document{&run.Bench}, key); err != nil {
			return err
		}
		for _, r := range renames {
			if _, err := tx.ExecContext(ctx, `UPDATE sample SET metric = ? WHERE metric = ? AND trial IN (SELECT key FROM trial WHERE run = ? AND benchmark = ?)`,
				r.New, r.Old, key, r.Benchmark); err != nil {
				return err
			}
		}
	}
	return nil
}

// current refuses a file that does not have the current version.
func (s *Store) current(ctx context.Context) error {
	found, err := s.stamp(ctx)
	if err != nil {
		return err
	}
	if found.empty() {
		return &FileError{Path: s.path, Kind: ErrEmpty, Err: errors.New("it is empty"), Advice: emptyAdvice}
	}
	if found.version < len(migrations()) {
		return errOlder
	}
	return nil
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
