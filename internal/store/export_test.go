package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// ApplicationID marks the file format.
const ApplicationID = applicationID

// Resolve returns the id of the run for a reference.
func (s *Store) Resolve(ctx context.Context, ref string) (string, error) {
	var id string
	err := s.read(ctx, func(tx *transaction) (err error) {
		id, err = resolve(ctx, tx, ref)
		return err
	})
	return id, err
}

// Check reads the whole file and reports damage as a *FileError with ErrDamaged.
func (s *Store) Check(ctx context.Context) error {
	const query = `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'
		UNION ALL SELECT 'a row of ' || "table" || ' has no parent in ' || parent FROM pragma_foreign_key_check`
	var findings []string
	err := s.each(ctx, func(scan scan) error {
		var finding string
		err := scan(&finding)
		findings = append(findings, finding)
		return err
	}, query)
	if err != nil {
		return fmt.Errorf("check: %w", s.explain(err))
	}
	if len(findings) > 0 {
		return fmt.Errorf("check: %w", &FileError{Path: s.path, Kind: ErrDamaged, Err: errors.New(strings.Join(findings, "; ")), Advice: damagedAdvice})
	}
	return nil
}

// ReadTrials reads trials that have only their Seq.
func (s *Store) ReadTrials(ctx context.Context, run int64, trials []result.Trial) error {
	return s.readTrials(ctx, run, trials, true)
}

// DB returns the store's database.
func (s *Store) DB() *sql.DB { return s.db }

// Pragma sets a pragma and limits the pool to this one connection.
func (s *Store) Pragma(t *testing.T, pragma string) {
	t.Helper()
	s.db.SetMaxOpenConns(1)
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA "+pragma); err != nil {
		t.Fatal(err)
	}
}

// Path returns the path given to Open.
func (s *Store) Path() string { return s.path }

// CreateError explains why a file cannot be made.
func CreateError(path string, err error) error { return createError(path, err) }

// Lacks names the part of the file system that an error of SQLite with this code misses.
func Lacks(code int) string {
	switch {
	case slices.Contains(sharedMemoryCodes, code):
		return "memory"
	case slices.Contains(syncCodes, code):
		return "sync"
	}
	return ""
}
