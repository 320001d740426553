package store

import (
	"database/sql"
	"testing"
)

// ApplicationID marks the file format.
const ApplicationID = applicationID

// Versions is the number of migrations.
func Versions(t *testing.T) int {
	scripts, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(scripts)
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
