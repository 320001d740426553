package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file bounds what a file can cost its reader. A few KiB can claim values and rows without end: a value may be computed, and the
// pages of a table may refer to one page many times. See also schema.go.
//
// The other sinks of SQLite are out of reach of a file: no query here sorts or groups in SQLite, whose temporary files have no limit.

// longestValue is the largest size of a row, in bytes. The longest value of ours is a compressed baseline, see maxBaseline.
const longestValue = 256 << 20

// errRows is the error of a file with more rows than bytes.
var errRows = errors.New("its tables claim more rows than the file has bytes")

// transaction is a transaction on a connection with limits. All queries of the package are part of one, because a limit of SQLite
// belongs to a connection, and the pool opens connections at any time.
type transaction struct {
	*sql.Tx
	stamp stamp
	// rows is the number of rows that the transaction may still read. A row takes several bytes of the file.
	rows int64
	// insertions are the prepared statements. They end with the transaction.
	insertions map[insertion]*sql.Stmt
}

// insertion identifies a statement that writes a number of rows.
type insertion struct {
	table string
	rows  int
}

// insertion prepares a statement once for all its uses in the transaction: SQLite takes longer to prepare one than to execute it.
func (tx *transaction) insertion(ctx context.Context, table, columns string, rows int) (*sql.Stmt, error) {
	key := insertion{table, rows}
	if statement := tx.insertions[key]; statement != nil {
		return statement, nil
	}
	row := "(?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ")"
	statement, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", table, columns, row, strings.Repeat(", "+row, rows-1)))
	if err == nil {
		tx.insertions[key] = statement
	}
	return statement, err
}

// begin starts a transaction. The caller must call end, also after the end of the transaction.
func (s *Store) begin(ctx context.Context, options *sql.TxOptions) (tx *transaction, end func() error, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, longestValue); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	endWait := noticeWait(ctx, s.path)
	raw, err := conn.BeginTx(ctx, options)
	endWait()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	tx = &transaction{Tx: raw, insertions: map[insertion]*sql.Stmt{}}
	end = func() error { return errors.Join(ended(raw.Rollback()), conn.Close()) }
	if err := tx.measure(ctx); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return tx, end, nil
}

// measure sets the limit of rows.
func (tx *transaction) measure(ctx context.Context) error {
	var pages, size int64
	if err := tx.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return err
	}
	tx.rows = pages * size
	return nil
}

// read calls do in a read-only transaction, which sees a consistent snapshot. It refuses a file that admit refuses, before any other
// query: the file may have changed since it was opened.
func (s *Store) read(ctx context.Context, do func(*transaction) error) error {
	tx, end, err := s.begin(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	if tx.stamp, err = readStamp(ctx, tx); err == nil {
		err = tx.stamp.admit(s.path)
	}
	if err == nil {
		err = do(tx)
	}
	return errors.Join(err, end())
}

// transact calls do in a transaction with the write lock from its start. It does not check the tables: only trusted users can change a
// file that is open for writing, and a view that one of them adds must not end a run.
func (s *Store) transact(ctx context.Context, do func(*transaction) error) error {
	tx, end, err := s.begin(ctx, nil)
	if err != nil {
		return err
	}
	if err = do(tx); err == nil {
		err = tx.Commit()
	}
	return errors.Join(err, end())
}

// ended ignores the error of a rollback after the end of the transaction.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// scan copies the columns of a row, like sql.Rows.Scan.
type scan = func(columns ...any) error

// each is the function each in a transaction of its own.
func (s *Store) each(ctx context.Context, row func(scan) error, query string, args ...any) error {
	return s.read(ctx, func(tx *transaction) error { return each(ctx, tx, row, query, args...) })
}

// each calls row for every row of a query.
func each(ctx context.Context, tx *transaction, row func(scan) error, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if tx.rows--; tx.rows < 0 {
			return errRows
		}
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
