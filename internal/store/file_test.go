package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// script executes statements on a SQLite file without the store.
func script(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must.Do(t, err)
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	must.Do(t, db.Close())
}

func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must.Do(t, err)
		contents[e.Name()] = string(data)
	}
	return contents
}

func TestBadFilesAreRefusedUnchanged(t *testing.T) {
	text := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) { must.Do(t, os.WriteFile(path, []byte(content), 0o600)) }
	}
	tables := func(statements ...string) func(*testing.T, string) {
		return func(t *testing.T, path string) { script(t, path, statements...) }
	}
	ours := fmt.Sprintf("PRAGMA application_id = %d", store.ApplicationID)
	const head, move, stranger = "SQLite format 3\x00", "move it", "another program"
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		kind error
		say  []string
	}{
		"text":                                   {text("targets: [oci/runc]\n"), store.ErrDamaged, []string{move}},
		"half a header":                          {text(head), store.ErrDamaged, []string{move}},
		"a header and zeros":                     {text(head + strings.Repeat("\x00", 8192)), store.ErrDamaged, []string{move}},
		"another program's":                      {tables("CREATE TABLE moz_places (id INTEGER)"), store.ErrForeign, []string{stranger}},
		"another program's, marked":              {tables("PRAGMA application_id = 252006675", "PRAGMA user_version = 2"), store.ErrForeign, []string{stranger}},
		"another program's, versioned but empty": {tables("PRAGMA user_version = 1"), store.ErrForeign, []string{stranger}},
		"another program's in write-ahead mode":  {tables("PRAGMA journal_mode = WAL", "CREATE TABLE moz_places (id INTEGER)"), store.ErrForeign, []string{stranger}},
		"a later version's": {
			tables(ours, "PRAGMA user_version = 2", "CREATE TABLE run (other BLOB)"), store.ErrVersion,
			[]string{"version 2", "knows 1", "use the version of touchstone that wrote it"},
		},
		"an earlier version's": {tables(ours), store.ErrVersion, []string{"version 0", "knows 1", "use the version of touchstone that wrote it"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.db")
			c.make(t, path)
			baseline := folder(t, filepath.Dir(path))
			_, err1 := store.Open(t.Context(), path)
			_, err2 := store.OpenReadOnly(t.Context(), path)
			for _, err := range []error{err1, err2} {
				var file *store.FileError
				if !errors.As(err, &file) || !errors.Is(err, c.kind) || file.Path != path {
					t.Errorf("the error is %v, want a FileError with %v", err, c.kind)
					continue
				}
				for _, want := range append(c.say, path) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the message does not say %q: %v", want, err)
					}
				}
			}
			expect.Equal(t, "the folder changed", baseline, folder(t, filepath.Dir(path)))
		})
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := store.OpenReadOnly(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReadOnly of a file that is not there: %v", err)
	}
	if _, err := store.Open(t.Context(), filepath.Join(dir, "none", "a.db")); !errors.Is(err, store.ErrNotWritable) || !strings.Contains(err.Error(), "folder") {
		t.Errorf("Open in a folder that is not there: %v", err)
	}
	if _, err := store.Open(t.Context(), dir); !errors.Is(err, store.ErrForeign) {
		t.Errorf("Open of a folder: %v", err)
	}
	if left := folder(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestEmptyFile opens an empty file, which a process leaves if it is killed right after the creation.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "touchstone.db")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("OpenReadOnly of an empty file: %v", err)
	}
	record(t, open(t, path), emptyRun("a", 0), 1)
}

// Invariant private-files.
func TestFilesArePrivate(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o277} {
		t.Run(fmt.Sprintf("%04o", umask), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "touchstone.db")
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			s := open(t, path)
			record(t, s, emptyRun("a", 0), 1)
			for _, name := range []string{path, path + "-wal", path + "-shm"} {
				info, err := os.Stat(name)
				must.Do(t, err)
				if info.Mode() != 0o600 {
					t.Errorf("%s has mode %v", filepath.Base(name), info.Mode())
				}
			}
		})
	}
}

// TestEveryConnectionIsSafe checks all connections of the pool: a pragma belongs to a connection, not to the file.
func TestEveryConnectionIsSafe(t *testing.T) {
	s := newStore(t)
	n := s.DB().Stats().MaxOpenConnections
	if n < 2 {
		t.Fatalf("the pool has %d connections", n)
	}
	for i := range n {
		conn, err := s.DB().Conn(t.Context())
		must.Do(t, err)
		t.Cleanup(func() { must.Do(t, conn.Close()) })
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "1", "foreign_keys": "0", "trusted_schema": "0", "busy_timeout": "10000",
		} {
			var got string
			must.Do(t, conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
			if got != want {
				t.Errorf("connection %d: %s is %s, want %s", i, pragma, got, want)
			}
		}
	}
}

// TestCommitFlushesTheLog checks that each commit flushes the log, since synchronous=NORMAL does not. A missing log is an error.
func TestCommitFlushesTheLog(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 1)
	log := s.Path() + "-wal"
	must.Do(t, os.Rename(log, log+".moved"))
	for name, err := range map[string]error{
		"Append": s.Append(t.Context(), "a", okTrial(2)),
		"Create": s.Create(t.Context(), emptyRun("b", 1)),
		"Finish": s.Finish(t.Context(), "a", result.Complete, epoch, nil),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "put the log on the disk") {
			t.Errorf("%s without a log: %v", name, err)
		}
	}
	must.Do(t, os.Rename(log+".moved", log))
	must.Do(t, s.Append(t.Context(), "a", okTrial(3)))
}

// TestTrialWritesFewPages checks that a trial writes a few small pages, and that SQLite overwrites the log repeatedly.
func TestTrialWritesFewPages(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 0)
	s.Pragma(t, "wal_checkpoint(TRUNCATE)")
	const lo, hi = 10, 300
	for seq := 1; seq <= lo; seq++ {
		must.Do(t, s.Append(t.Context(), "a", okTrial(seq)))
	}
	if average := logSize(t, s) / lo; average > 10<<10 { // one page for each table
		t.Errorf("a trial is %d bytes in the log", average)
	}
	for seq := lo + 1; seq <= hi; seq++ {
		must.Do(t, s.Append(t.Context(), "a", okTrial(seq)))
	}
	if size := logSize(t, s); size > 300<<10 {
		t.Errorf("the log has %d bytes after %d trials", size, hi)
	}
	checkTrials(t, s, "a", hi)
}

func logSize(t *testing.T, s *store.Store) int64 {
	t.Helper()
	info, err := os.Stat(s.Path() + "-wal")
	must.Do(t, err)
	return info.Size()
}

func TestReadOnlyStoreRefusesToWrite(t *testing.T) {
	s := openReader(t, newFile(t, 1))
	for name, err := range map[string]error{
		"Create":         s.Create(t.Context(), emptyRun("b", 0)),
		"Append":         s.Append(t.Context(), "a", okTrial(2)),
		"Resume":         s.Resume(t.Context(), "a"),
		"SaveBaseline":   s.SaveBaseline(t.Context(), "main", epoch, result.Tool{}, []result.Run{complete("b", 1)}, false),
		"RemoveBaseline": s.RemoveBaseline(t.Context(), "main"),
	} {
		if !errors.Is(err, store.ErrNotWritable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBusyFile(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 1)
	second := open(t, s.Path())
	second.Pragma(t, "busy_timeout = 0")
	tx, err := s.DB().BeginTx(t.Context(), nil)
	must.Do(t, err)
	if err := second.Append(t.Context(), "a", okTrial(2)); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "retry") || strings.Count(err.Error(), s.Path()) != 2 {
		t.Errorf("Append while another writes: %v", err)
	}
	if _, err := second.Run(t.Context(), "a"); err != nil {
		t.Errorf("Run while another writes: %v", err)
	}
	must.Do(t, tx.Rollback())
	must.Do(t, second.Append(t.Context(), "a", okTrial(2)))
}

// A write that waits for another process gives notice of the file, and succeeds as soon as the other one has finished.
func TestNoticeOfWait(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 1)
	second := open(t, s.Path())
	tx, err := s.DB().BeginTx(t.Context(), nil)
	must.Do(t, err)
	paths := make(chan string, 1)
	ctx := store.WithNotice(t.Context(), time.Millisecond, func(path string) {
		_ = tx.Rollback()
		paths <- path
	})
	must.Do(t, second.Append(ctx, "a", okTrial(2)))
	expect.Equal(t, "the file", s.Path(), <-paths)
}

// TestSwitchToWriteAheadWaits checks that the switch waits for a writer until the context ends. Without the wait SQLite reports a
// busy file immediately.
func TestSwitchToWriteAheadWaits(t *testing.T) {
	path := newFile(t, 0)
	script(t, path, "PRAGMA journal_mode = DELETE")
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	must.Do(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	must.Do(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := store.Open(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open while another writes: %v", err)
	}
	must.Do(t, tx.Rollback())
	must.Do(t, db.Close())
	must.Do(t, open(t, path).Create(t.Context(), emptyRun("b", 0)))
}

// fill appends trials until the store is full, and returns their number.
func fill(t testing.TB, s *store.Store, runID string) int {
	t.Helper()
	for seq := 1; seq < 100_000; seq++ {
		if err := s.Append(t.Context(), runID, okTrial(seq)); err != nil {
			if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free some space") {
				t.Fatalf("append to a full store: %v", err)
			}
			checkTrials(t, s, runID, seq-1)
			return seq - 1
		}
	}
	t.Fatal("the store is never full")
	return 0
}

// checkTrials checks that a run has the whole trials 1 to n, and that the file is undamaged.
func checkTrials(t testing.TB, s *store.Store, runID string, n int) {
	t.Helper()
	run, err := s.Run(t.Context(), runID)
	must.Do(t, err)
	if len(run.Trials) != n || n == 0 {
		t.Fatalf("the run has %d trials, want %d and more than none", len(run.Trials), n)
	}
	for i, trial := range run.Trials {
		if diff := cmp.Diff(okTrial(i+1), trial); diff != "" {
			t.Fatalf("trial %d is another (-want +got):\n%s", i+1, diff)
		}
	}
	must.Do(t, s.Check(t.Context()))
}

func TestDamagedFile(t *testing.T) {
	data, err := os.ReadFile(newFile(t, 50))
	must.Do(t, err)

	for name, damage := range map[string]func([]byte) []byte{
		"a page overwritten": func(b []byte) []byte {
			copy(b[2*4096:], bytes.Repeat([]byte{0xA5}, len(b)-2*4096))
			return b
		},
		"the end cut off": func(b []byte) []byte { return b[:len(b)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "touchstone.db")
			must.Do(t, os.WriteFile(path, damage(bytes.Clone(data)), 0o600))
			baseline := folder(t, filepath.Dir(path))
			if s, err := store.OpenReadOnly(t.Context(), path); err != nil {
				checkDamaged(t, err)
			} else {
				_, err := s.Run(t.Context(), "a")
				checkDamaged(t, err)
				checkDamaged(t, s.Check(t.Context()))
				closeStore(t, s)
			}
			if diff := cmp.Diff(baseline, folder(t, filepath.Dir(path))); diff != "" {
				t.Error("reading changed the folder")
			}
		})
	}
}

func checkDamaged(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "move it") {
		t.Errorf("the error is %v, want one with ErrDamaged", err)
	}
}

// TestHalfCheckpoint reads a file after a kill during a checkpoint, which is complete only together with its log.
func TestHalfCheckpoint(t *testing.T) {
	s := newStore(t)
	start, err := os.Stat(s.Path())
	must.Do(t, err)
	record(t, s, emptyRun("a", 0), 20)
	log, err := os.ReadFile(s.Path() + "-wal")
	must.Do(t, err)
	_, err = s.DB().ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
	must.Do(t, err)
	data, err := os.ReadFile(s.Path())
	must.Do(t, err)
	if int64(len(data)) == start.Size() {
		t.Fatal("the checkpoint adds no page")
	}
	for name, open := range map[string]func(context.Context, string) (*store.Store, error){"Open": store.Open, "OpenReadOnly": store.OpenReadOnly} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "touchstone.db")
			must.Do(t, os.WriteFile(path, data[:start.Size()], 0o600))
			must.Do(t, os.WriteFile(path+"-wal", log, 0o600))
			s, err := open(t.Context(), path)
			must.Do(t, err)
			checkTrials(t, s, "a", 20)
			closeStore(t, s)
		})
	}
}
