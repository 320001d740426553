package store_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// endless is a query without an end.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "

// alterations are files of a bad user, by the statements that make them from a results file.
func alterations() map[string][]string {
	var tables []string
	for i := range 1100 {
		tables = append(tables, fmt.Sprintf("CREATE TABLE more%d (a)", i))
	}
	return map[string][]string{
		`view "run"`: {
			"PRAGMA foreign_keys = 0", "DROP TABLE run",
			"CREATE VIEW run AS " + endless + `SELECT i AS key, 'a' || i AS id, 'x' AS name, 'complete' AS state, NULL AS started, NULL AS ended, '{}' AS tool,
				'1' AS seed, '' AS baseline, '' AS plan, '{}' AS host, '[]' AS targets, '[]' AS benchmarks, '{}' AS overhead, 'null' AS caveats, 'null' AS images,
				0 AS imported, 'null' AS stopping FROM n`,
		},
		`view "other"`: {"CREATE VIEW other AS SELECT 1"},
		`table "sample"`: {
			"DROP TABLE sample",
			"CREATE TABLE sample (trial INTEGER, ord INTEGER, metric TEXT AS (hex(zeroblob(400000000))), value REAL)",
		},
		`table "phase"`:        {"DROP TABLE phase", "CREATE TABLE phase (trial, ord, name, start_ns, duration_ns, more AS (hex(zeroblob(400000000))) STORED)"},
		`table "timeline"`:     {"DROP TABLE timeline", "CREATE TABLE timeline (trial, ord, line CHECK (length(hex(zeroblob(400000000))) > 0))"},
		`table "distribution"`: {"ALTER TABLE distribution ADD COLUMN more TEXT DEFAULT 'x'"},
		`table "baseline"`:     {"DROP TABLE baseline", "CREATE VIRTUAL TABLE baseline USING fts5(name, saved, runs, document)"},
		`trigger "grow"`:       {"CREATE TRIGGER grow AFTER INSERT ON trial BEGIN INSERT INTO phase VALUES (1, 99, hex(zeroblob(400000000)), 0, 0); END"},
		`index "slow"`:         {"CREATE INDEX slow ON trial (length(hex(zeroblob(4)) || seq))"},
		`index "part"`:         {"CREATE INDEX part ON trial (seq) WHERE length(output) > 3"},
		`index "plain"`:        {"CREATE INDEX plain ON trial (seq)"},
		`table "sqlite_stat1"`: {"ANALYZE"},
		`table "more0"`:        {"BEGIN;" + strings.Join(tables, ";") + ";COMMIT"},
		`table "trial"`:        {"ALTER TABLE trial RENAME COLUMN output TO result"},
		`without table phase`:  {"DROP TABLE phase"},
		// A row of sqlite_schema that no statement makes.
		`index "sqlite_autoindex_run_1"`: {
			"PRAGMA writable_schema = 1", "UPDATE sqlite_schema SET tbl_name = 'trial' WHERE name = 'sqlite_autoindex_run_1'",
		},
	}
}

// openers open a file in each way.
func openers() map[string]func(context.Context, string) (*store.Store, error) {
	return map[string]func(context.Context, string) (*store.Store, error){
		"writable": store.Open, "read only": store.OpenReadOnly,
		"immutable": func(ctx context.Context, path string) (*store.Store, error) {
			dir := filepath.Dir(path)
			if err := os.Chmod(dir, 0o777); err != nil {
				return nil, err
			}
			defer func() { _ = os.Chmod(dir, 0o700) }()
			return store.OpenReadOnly(ctx, path)
		},
	}
}

func closed(s *store.Store, err error) error {
	if err != nil {
		return err
	}
	return s.Close()
}

// TestAlteredTables: a file with other tables than the migration makes is refused before any query of its content, and stays as it is.
//
// Invariant results-schema.
func TestAlteredTables(t *testing.T) {
	for object, statements := range alterations() {
		t.Run(object, func(t *testing.T) {
			path := newFile(t, 1)
			script(t, path, append([]string{"PRAGMA trusted_schema = 1"}, statements...)...)
			baseline := folder(t, filepath.Dir(path))
			for name, open := range openers() {
				err := closed(open(t.Context(), path))
				if !errors.Is(err, store.ErrAltered) || !strings.Contains(err.Error(), object) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: the error is %v, want ErrAltered with %s", name, err, object)
				}
			}
			expect.Equal(t, "the folder changed", baseline, folder(t, filepath.Dir(path)))
		})
	}
}

// TestAlteredAfterOpening: a reader also refuses tables that change after it has opened the file.
//
// Invariant results-schema.
func TestAlteredAfterOpening(t *testing.T) {
	path := newFile(t, 1)
	s, reader := open(t, path), openReader(t, path)
	script(t, path, "CREATE VIEW more AS "+endless+"SELECT i FROM n")
	for name, read := range map[string]func() error{
		"Run":        func() error { _, err := reader.Run(t.Context(), "a"); return err },
		"Runs":       func() error { _, err := reader.Runs(t.Context()); return err },
		"Index":      func() error { _, err := reader.Index(t.Context()); return err },
		"Recorded":   func() error { _, err := reader.Recorded(t.Context()); return err },
		"Baselines":  func() error { _, err := reader.Baselines(t.Context()); return err },
		"Baseline":   func() error { _, err := reader.Baseline(t.Context(), "main"); return err },
		"Imported":   func() error { _, err := reader.Imported(t.Context(), "a"); return err },
		"TrialTimes": func() error { _, err := reader.TrialTimes(t.Context()); return err },
	} {
		if err := read(); !errors.Is(err, store.ErrAltered) {
			t.Errorf("%s: the error is %v, want ErrAltered", name, err)
		}
	}
	// A run under way does not end by it.
	must.Do(t, s.Append(t.Context(), "a", okTrial(2)))
}

// TestLoopOfPages: the pages of a table refer to one page many times, so that a file of some KiB has more than 10⁹ rows. Each reader stops.
//
// Invariant results-schema.
func TestLoopOfPages(t *testing.T) {
	const page = 1024
	for name, c := range map[string]struct {
		table string
		read  func(s *store.Store) error
	}{
		"run":   {"run", func(s *store.Store) error { _, err := s.Runs(t.Context()); return err }},
		"ids":   {"run", func(s *store.Store) error { _, err := s.Run(t.Context(), "b"); return err }},
		"trial": {"trial", func(s *store.Store) error { _, err := s.Runs(t.Context()); return err }},
		"times": {"trial", func(s *store.Store) error { _, err := s.TrialTimes(t.Context()); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t, 1)
			script(t, path, "PRAGMA journal_mode = DELETE")
			file, err := os.ReadFile(path)
			must.Do(t, err)
			root := rootPage(t, path, c.table)
			leaf := append([]byte{}, file[(root-1)*page:root*page]...)
			if leaf[0] != 13 {
				t.Fatalf("the table %s has a first page of type %d, want one leaf", c.table, leaf[0])
			}
			// The root and four more levels each have 50 references to the next level.
			const levels, references = 5, 50
			first := len(file) / page // pages are counted from 1
			interior := func(child int) []byte {
				p := make([]byte, page)
				p[0] = 5
				binary.BigEndian.PutUint16(p[3:], references)
				start := page - references*5
				binary.BigEndian.PutUint16(p[5:], uint16(start))
				binary.BigEndian.PutUint32(p[8:], uint32(child))
				for i := range references {
					cell := start + i*5
					binary.BigEndian.PutUint16(p[12+2*i:], uint16(cell))
					binary.BigEndian.PutUint32(p[cell:], uint32(child))
					p[cell+4] = 1
				}
				return p
			}
			copy(file[(root-1)*page:], interior(first+1))
			for level := 1; level < levels; level++ {
				file = append(file, interior(first+level+1)...)
			}
			file = append(file, leaf...)
			binary.BigEndian.PutUint32(file[28:], uint32(len(file)/page))
			must.Do(t, os.WriteFile(path, file, fs.FileMode(0o600)))
			if err := c.read(openReader(t, path)); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "more rows than the file has bytes") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// rootPage returns the number of the first page of a table.
func rootPage(t *testing.T, path, table string) (root int) {
	t.Helper()
	must.Do(t, openReader(t, path).DB().QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = ?", table).Scan(&root))
	return root
}
