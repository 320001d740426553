package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// errOlder is the error of current for a file of an earlier version.
var errOlder = errors.New("the file has an earlier version")

// applicationID marks a SQLite file as Touchstone's; migrations/0001_runs.sql
// sets it. It reads "TSTN".
const applicationID = 0x5453544E

// busyTimeout is how long a statement waits for another process that writes. A
// transaction of ours holds the file for milliseconds.
const busyTimeout = 10 * time.Second

// busyPause is the time between two tries where SQLite itself does not wait.
const busyPause = 20 * time.Millisecond

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations gives the scripts that lead from version to version: the first makes
// version 1 of an empty file. The version of the format is their number.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var scripts []string
	for _, name := range names {
		script, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, string(script))
	}
	return scripts, nil
}

// stamp is what a SQLite file says of itself.
type stamp struct {
	application int64
	version     int
	objects     int // tables, indices, …; only read if application is 0
}

// empty tells whether nothing has been put into the file yet.
func (s stamp) empty() bool { return s == stamp{} }

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readStamp(ctx context.Context, q querier) (stamp, error) {
	var s stamp
	if err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&s.application); err != nil {
		return stamp{}, err
	}
	if err := q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&s.version); err != nil {
		return stamp{}, err
	}
	if s.application != 0 {
		return s, nil
	}
	err := q.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&s.objects)
	return s, err
}

// admit refuses a file that is not ours or that is too new. known is the number
// of migrations.
func (s stamp) admit(path string, known int) error {
	switch {
	case s.empty():
		return nil
	case s.application != applicationID:
		return &FileError{Path: path, Kind: ErrForeign, Err: errors.New("it is a SQLite database of another program"), Advice: foreignAdvice}
	case s.version > known:
		return &FileError{
			Path: path, Kind: ErrNewer, Advice: "use a newer touchstone",
			Err: fmt.Errorf("the file has version %d and this touchstone knows %d", s.version, known),
		}
	}
	return nil
}

// peek refuses the file called name if admit does, and leaves no trace: SQLite is told
// that the file is immutable, and so neither locks it nor repairs it. What is in
// a log only is not seen; where there is one, damage can be what a kill amid a
// checkpoint leaves, and the log mends it. migrate and current then look again.
func peek(ctx context.Context, path, name string) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	s, err := connect(path, dsn(name, "mode=ro", "immutable=1"))
	if err != nil {
		return err
	}
	found, err := readStamp(ctx, s.db)
	err = errors.Join(s.explain(err), s.Close())
	if errors.Is(err, ErrDamaged) && !settled(name) {
		return nil
	}
	if err != nil {
		return err
	}
	return found.admit(path, len(known))
}

// migrate brings the file to the present version, in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	// Most files are up to date: they need no lock.
	if found, err := readStamp(ctx, s.db); err != nil || found.application == applicationID && found.version == len(scripts) {
		return err
	}
	// A new file has no log yet; and what is lost of this is done again.
	return s.transact(ctx, func(tx *sql.Tx) error {
		found, err := readStamp(ctx, tx)
		if err != nil {
			return err
		}
		if err := found.admit(s.path, len(scripts)); err != nil {
			return err
		}
		for i := found.version; i < len(scripts); i++ {
			// A PRAGMA takes no parameters; the version is a number of ours.
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA user_version = %d", scripts[i], i+1)); err != nil {
				return fmt.Errorf("upgrade the file from version %d to %d: %w", i, i+1, err)
			}
		}
		return upgradeRuns(ctx, tx)
	})
}

// upgradeRuns brings all runs of the file to the current version of the result schema.
func upgradeRuns(ctx context.Context, tx *sql.Tx) error {
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

// current refuses a file that is not of the present version.
func (s *Store) current(ctx context.Context) error {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	found, err := readStamp(ctx, s.db)
	if err != nil {
		return err
	}
	if err := found.admit(s.path, len(scripts)); err != nil {
		return err
	}
	if found.empty() {
		return &FileError{Path: s.path, Kind: ErrForeign, Err: errors.New("it is empty"), Advice: foreignAdvice}
	}
	if found.version < len(scripts) {
		return errOlder
	}
	return nil
}

// writeAhead switches the file to write-ahead mode, in which it then stays. For
// the switch SQLite raises a read lock to an exclusive one; if another process has
// the write lock it does not wait, as it does elsewhere, since both might wait for
// each other, but says at once that the file is busy.
func (s *Store) writeAhead(ctx context.Context) error {
	pause := time.NewTicker(busyPause)
	defer pause.Stop()
	for tries := busyTimeout / busyPause; ; tries-- {
		var mode string
		err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if err == nil && mode != "wal" {
			return fmt.Errorf("switch results file %q to write-ahead mode: SQLite stays in mode %q", s.path, mode)
		}
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

// dsn is the data source name of a file, which must be absolute. Each parameter is
// name=value, of SQLite's URI or of the driver.
func dsn(name string, parameters ...string) string {
	query := url.Values{}
	for _, p := range append(parameters,
		fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout.Milliseconds()),
		"_pragma=cell_size_check(1)", // notice damage early
		"_pragma=trusted_schema(0)",  // the file may come from anybody
		"_defensive=1",
		"_dqs=0",
		"_error_rc=1",
	) {
		key, value, _ := strings.Cut(p, "=")
		query.Add(key, value)
	}
	return (&url.URL{Scheme: "file", Path: name, RawQuery: query.Encode()}).String()
}
