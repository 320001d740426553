package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
)

// This file refuses a file whose tables are not exactly those that the migration makes. SQLite computes what a file defines: a view in
// the place of a table, a generated column, an index or a CHECK constraint on an expression runs with each query, and fills the memory or
// the disk of the reader. Added tables and triggers have no use for Touchstone.

//go:embed schema.txt
var schemaText string

// schema returns the objects of a results file: the digest by type and name.
var schema = sync.OnceValue(func() map[string]string {
	digests := map[string]string{}
	for line := range strings.Lines(schemaText) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			panic(fmt.Sprintf("a line of schema.txt is not TYPE NAME DIGEST: %q", line))
		}
		digests[fields[0]+" "+fields[1]] = fields[2]
	}
	return digests
})

// object is a row of sqlite_schema without its place in the file.
type object struct {
	kind, name, table string
	// text is the statement that makes the object. The index of a primary key has none.
	text sql.NullString
}

// digest identifies the content of the row.
func (o object) digest() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.kind, o.name, o.table, o.text.String}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// foreignObject returns the first object of the file that is not one of the expected ones, or that it lacks: "view \"run\"". It is
// empty for exactly the expected objects.
func foreignObject(ctx context.Context, tx *transaction, digests map[string]string) (stranger string, err error) {
	keys := map[string]bool{}
	rows, err := tx.QueryContext(ctx, "SELECT type, name, tbl_name, sql FROM sqlite_schema")
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.table, &o.text); err != nil {
			return "", err
		}
		key := o.kind + " " + o.name
		if keys[key] || digests[key] != o.digest() {
			return fmt.Sprintf("%.20s %.50q", o.kind, o.name), nil // the rest may have no end
		}
		keys[key] = true
	}
	for key := range digests {
		if !keys[key] {
			return "file without " + key, rows.Err()
		}
	}
	return "", rows.Err()
}
