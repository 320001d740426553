package store

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sqlite3 "modernc.org/sqlite/lib"
)

var update = flag.Bool("update", false, "write schemas.txt")

// TestSchemas: schemas.txt has the objects that the migrations make, for each version.
func TestSchemas(t *testing.T) {
	s, err := connect("x", dsn(filepath.Join(t.TempDir(), "touchstone.db"), "mode=rwc"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var lines []string
	for i, script := range migrations() {
		if _, err := s.db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		for _, o := range objectsOf(t, s) {
			lines = append(lines, fmt.Sprintf("%d %s %s %s\n", i+1, o.kind, o.name, o.digest()))
		}
	}
	slices.Sort(lines)
	text := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("schemas.txt", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, schemasText); diff != "" {
		t.Errorf("schemas.txt differs from the migrations; run go test -run TestSchemas -update (-migrations +file):\n%s", diff)
	}
}

// objectsOf lists the objects in a results file.
func objectsOf(t *testing.T, s *Store) (objects []object) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "SELECT type, name, tbl_name, sql FROM sqlite_schema")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.table, &o.text); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestValuesAreLimited: no query returns a value that is longer than those of Touchstone, on any connection of the pool.
func TestValuesAreLimited(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "touchstone.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var transactions []func() error
	for range connections {
		tx, end, err := s.begin(t.Context(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		transactions = append(transactions, end)
		var value []byte
		err = tx.QueryRowContext(t.Context(), "SELECT zeroblob(?)", longestValue+1).Scan(&value)
		if primary(code(err)) != sqlite3.SQLITE_TOOBIG {
			t.Errorf("a long value: %v", err)
		}
	}
	for _, end := range transactions {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
