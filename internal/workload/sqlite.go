package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SQLite is the path of SQLite's shell in the workload image.
const SQLite = "/usr/bin/sqlite3"

var sqliteTool = Tool{Name: "SQLite", Packages: []string{"sqlite3"}, Files: []string{SQLite}}

// The files of the insertions, in the current directory.
const (
	sqliteFile   = "touchstone.db"
	sqliteScript = "touchstone.sql"
)

// sqliteTable is that of pts/sqlite, with an index, which wang §5.3 tells of.
const sqliteTable = "CREATE TABLE pts1 (I SMALLINT NOT NULL, DT TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP," +
	" F1 VARCHAR(4) NOT NULL, F2 VARCHAR(16) NOT NULL); CREATE INDEX pts1_f1 ON pts1 (F1);"

// sqliteRows writes the script: an insertion a line, all of them the same on every target. The multipliers spread the
// keys over the index; both are odd, so that no two rows in 65536 have the same key.
const sqliteRows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d)" +
	" SELECT printf('INSERT INTO pts1 (I, F1, F2) VALUES (%%d, ''%%04X'', ''%%016X'');', i, i * 40503 %% 65536, i * 2654435761) FROM n;"

// Insertions calls SQLite three times: to make an indexed table and a script of so many insertions, to run it, and to
// check that the rows are there. Each insertion is a transaction of its own, which SQLite syncs to the disk, as in
// pts/sqlite. The value, under the name that is given, is how long SQLite took to run the script, in seconds, with
// its start: pts/sqlite times the same.
func Insertions(n int, metric string) []Step {
	return []Step{
		{
			Args:  []string{SQLite, "-batch", "-bail", sqliteFile, sqliteTable, ".once " + sqliteScript, fmt.Sprintf(sqliteRows, n)},
			Parse: func(stdout []byte, _ time.Duration) (Values, error) { return nil, says(stdout, "") },
		},
		{
			Args: []string{SQLite, "-batch", "-bail", sqliteFile, ".read " + sqliteScript},
			Parse: func(stdout []byte, took time.Duration) (Values, error) {
				return Values{metric: took.Seconds()}, says(stdout, "")
			},
		},
		{
			Args: []string{
				SQLite, "-batch", "-bail", sqliteFile,
				"SELECT count(*), count(DISTINCT I), min(I), max(I) FROM pts1;", "PRAGMA integrity_check;",
			},
			Parse: func(stdout []byte, _ time.Duration) (Values, error) {
				rows := strconv.Itoa(n)
				return nil, says(stdout, strings.Join([]string{rows, rows, "1", rows}, "|")+"\nok\n")
			},
		},
	}
}

// says refuses output that is not what is expected.
func says(stdout []byte, want string) error {
	if string(stdout) != want {
		return fmt.Errorf("SQLite says %q instead of %q", cut(string(stdout)), want)
	}
	return nil
}
