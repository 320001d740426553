package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// This file refuses a file whose tables are not exactly those that the migrations make. SQLite computes what a file defines: a view in
// the place of a table, a generated column, an index or a CHECK constraint on an expression runs with each query, and fills the memory or
// the disk of the reader. Added tables and triggers have no use for Touchstone.

//go:embed schemas.txt
var schemasText string

// schemas returns the objects of each version: the digest by type and name.
var schemas = sync.OnceValue(func() []map[string]string {
	all := make([]map[string]string, len(migrations())+1)
	for i := range all {
		all[i] = map[string]string{}
	}
	for line := range strings.Lines(schemasText) {
		fields := strings.Fields(line)
		version, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) != 4 || version >= len(all) {
			panic(fmt.Sprintf("a line of schemas.txt is not VERSION TYPE NAME DIGEST: %q", line))
		}
		all[version][fields[1]+" "+fields[2]] = fields[3]
	}
	return all
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

// foreignObject returns the first object of the file that a file of this version does not have, or that it lacks: "view \"run\"". It is
// empty for the objects of the version.
func foreignObject(ctx context.Context, tx *transaction, version int) (foreign string, err error) {
	expected := schemas()[version]
	seen := map[string]bool{}
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
		if seen[key] || expected[key] != o.digest() {
			return fmt.Sprintf("%.20s %.50q", o.kind, o.name), nil // the rest may have no end
		}
		seen[key] = true
	}
	for key := range expected {
		if !seen[key] {
			return "file without " + key, rows.Err()
		}
	}
	return "", rows.Err()
}
