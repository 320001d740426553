package store

import (
	"database/sql"
	"testing"
)

// ApplicationID is the mark of the file's format.
const ApplicationID = applicationID

// Versions is the number of migrations.
func Versions(t *testing.T) int {
	scripts, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(scripts)
}

// DB is the store's database, to look behind the store.
func (s *Store) DB() *sql.DB { return s.db }

// Pragma sets a pragma for all that follows, on the only connection that is then
// left.
func (s *Store) Pragma(t *testing.T, pragma string) {
	t.Helper()
	s.db.SetMaxOpenConns(1)
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA "+pragma); err != nil {
		t.Fatal(err)
	}
}

// Path is the path that the store was opened with.
func (s *Store) Path() string { return s.path }
