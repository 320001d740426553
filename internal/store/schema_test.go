package store

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write schema.txt")

// TestSchema: schema.txt has the objects that the migration makes.
//
// Invariant results-schema: A results file has exactly the tables that the migration makes, and no query of its content runs before this is
// known; no reader gets more rows than the file has bytes.
func TestSchema(t *testing.T) {
	s, err := connect("x", dsn(filepath.Join(t.TempDir(), "touchstone.db"), "mode=rwc"))
	must.Do(t, err)
	defer func() { _ = s.Close() }()
	_, err = s.db.ExecContext(t.Context(), migration)
	must.Do(t, err)
	rows, err := s.db.QueryContext(t.Context(), "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
	must.Do(t, err)
	defer func() { _ = rows.Close() }()
	var text strings.Builder
	for rows.Next() {
		var o object
		must.Do(t, rows.Scan(&o.kind, &o.name, &o.table, &o.text))
		fmt.Fprintf(&text, "%s %s %s\n", o.kind, o.name, o.digest())
	}
	must.Do(t, rows.Err())
	if *update {
		must.Do(t, os.WriteFile("schema.txt", []byte(text.String()), 0o600))
		return
	}
	if diff := cmp.Diff(text.String(), schemaText); diff != "" {
		t.Errorf("schema.txt differs from the migration; run go test -run TestSchema -update (-migration +file):\n%s", diff)
	}
}

// TestValuesAreLimited: no query returns a value that is longer than those of Touchstone, on any connection of the pool.
func TestValuesAreLimited(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "touchstone.db"))
	must.Do(t, err)
	defer func() { _ = s.Close() }()
	var transactions []func() error
	for range connections {
		tx, end, err := s.begin(t.Context(), &sql.TxOptions{ReadOnly: true})
		must.Do(t, err)
		transactions = append(transactions, end)
		var value []byte
		err = tx.QueryRowContext(t.Context(), "SELECT zeroblob(?)", longestValue+1).Scan(&value)
		if primary(code(err)) != sqlite3.SQLITE_TOOBIG {
			t.Errorf("a long value: %v", err)
		}
	}
	for _, end := range transactions {
		must.Do(t, end())
	}
}
