package programs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// SQLite is the path of SQLite's shell in the workload image.
const SQLite = "/usr/bin/sqlite3"

var sqliteTool = Tool{Name: "SQLite", Packages: []string{"sqlite3"}, Files: []string{SQLite}}

// The files of the insertions, in the current directory.
const (
	sqliteFile   = "touchstone.db"
	sqliteScript = "touchstone.sql"
)

// sqliteTable is the table of pts/sqlite, with the index that wang §5.3 mentions.
const sqliteTable = "CREATE TABLE pts1 (I SMALLINT NOT NULL, DT TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP," +
	" F1 VARCHAR(4) NOT NULL, F2 VARCHAR(16) NOT NULL); CREATE INDEX pts1_f1 ON pts1 (F1);"

// sqliteRows writes the script: one insertion a line, the same on every target. The multipliers spread the keys over the
// index; both are odd, so that no two rows in 65536 have the same key.
const sqliteRows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d)" +
	" SELECT printf('INSERT INTO pts1 (I, F1, F2) VALUES (%%d, ''%%04X'', ''%%016X'');', i, i * 40503 %% 65536, i * 2654435761) FROM n;"

// Insertions calls SQLite three times: to make an indexed table and a script of n insertions, to run the script, and to check
// the rows. Each insertion is a transaction of its own, which SQLite syncs to the disk, as in pts/sqlite. The metric is the
// time of the process that runs the script, as in pts/sqlite.
func Insertions(n int, metric string) []workload.Program {
	rows := strconv.Itoa(n)
	shell := func(want, elapsed string, commands ...string) workload.Program {
		return workload.Program{
			Args: append([]string{SQLite, "-batch", "-bail", sqliteFile}, commands...), Parse: reading("SQLite's output", silent(want)), Elapsed: elapsed,
		}
	}
	return []workload.Program{
		shell("", "", sqliteTable, ".once "+sqliteScript, fmt.Sprintf(sqliteRows, n)),
		shell("", metric, ".read "+sqliteScript),
		shell(
			strings.Join([]string{rows, rows, "1", rows}, "|")+"\nok\n", "",
			"SELECT count(*), count(DISTINCT I), min(I), max(I) FROM pts1;", "PRAGMA integrity_check;",
		),
	}
}
