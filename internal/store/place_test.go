package store_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// journal is the journal mode in the header of a results file.
func journal(t *testing.T, path string) string {
	t.Helper()
	head, err := os.ReadFile(path)
	must.Do(t, err)
	return map[byte]string{1: "rollback", 2: "write-ahead"}[head[18]]
}

// inChild repeats the test in a process of its own, where it returns true. The limit below is of the process, which also writes the log of
// go test.
func inChild(t *testing.T) bool {
	t.Helper()
	const mark = "TOUCHSTONE_TEST_CHILD"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

// withoutSharedMemory calls do while no file of this process can reach the length of SQLite's shared file.
func withoutSharedMemory(t *testing.T, do func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var original unix.Rlimit
	must.Do(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, nil, &original))
	must.Do(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 31 << 10, Max: original.Max}, nil))
	defer func() { must.Do(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, &original, nil)) }()
	do()
}

// A results file works where processes cannot share memory: it is made, used by two writers, read, and goes back to the
// write-ahead log in a better place.
//
// Invariant results-anywhere.
func TestPlaceWithoutSharedMemory(t *testing.T) {
	if !inChild(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "results.db")
	withoutSharedMemory(t, func() {
		first, second := open(t, path), open(t, path)
		var writers sync.WaitGroup
		for i, s := range []*store.Store{first, second} {
			id := string(rune('a' + i))
			must.Do(t, s.Create(t.Context(), emptyRun(id, i)))
			writers.Go(func() {
				if err := s.Append(t.Context(), id, okTrial(1)); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		must.Do(t, first.Finish(t.Context(), "a", result.Complete, time.Now(), nil))
		closeStore(t, first)
		closeStore(t, second)
		reader, err := store.OpenReadOnly(t.Context(), path)
		must.Do(t, err)
		if runs, err := reader.Runs(t.Context()); err != nil || len(runs) != 2 || runs[0].Trials[result.OK] != 1 || runs[1].Trials[result.OK] != 1 {
			t.Errorf("the runs are %+v, %v", runs, err)
		}
		closeStore(t, reader)
		if got := journal(t, path); got != "rollback" {
			t.Errorf("the file has a %s journal, want rollback", got)
		}
	})
	if entries := folder(t, filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files remain, want 1", len(entries))
	}
	closeStore(t, open(t, path))
	if got := journal(t, path); got != "write-ahead" {
		t.Errorf("the file has a %s journal, want write-ahead", got)
	}
}

// A file with a log moves to a place without shared memory, with a run that is only in the log.
//
// Invariant results-anywhere.
func TestLogInPlaceWithoutSharedMemory(t *testing.T) {
	if !inChild(t) {
		return
	}
	for _, name := range []string{"reader", "writer"} {
		t.Run(name, func(t *testing.T) {
			oldPath := filepath.Join(t.TempDir(), "results.db")
			s := open(t, oldPath)
			must.Do(t, s.Create(t.Context(), emptyRun("a", 0)))
			path := filepath.Join(t.TempDir(), "results.db")
			for _, suffix := range []string{"", "-wal"} {
				text, err := os.ReadFile(oldPath + suffix)
				must.Do(t, err)
				must.Do(t, os.WriteFile(path+suffix, text, 0o600))
			}
			closeStore(t, s)
			withoutSharedMemory(t, func() {
				if name == "reader" {
					checkReaderKeeps(t, path)
					return
				}
				reader, err := store.Open(t.Context(), path)
				must.Do(t, err)
				if runs, err := reader.Runs(t.Context()); err != nil || len(runs) != 1 {
					t.Errorf("the runs are %+v, %v", runs, err)
				}
				closeStore(t, reader)
			})
		})
	}
}

// checkReaderKeeps checks that a reader refuses a file with a log, and changes neither.
func checkReaderKeeps(t *testing.T, path string) {
	t.Helper()
	contents := func() (texts [2]string) {
		for i, suffix := range []string{"", "-wal"} {
			text, err := os.ReadFile(path + suffix)
			must.Do(t, err)
			texts[i] = string(text)
		}
		return texts
	}
	baseline := contents()
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrPlace) || !strings.Contains(err.Error(), "where it was written") {
		t.Errorf("the reader ends with %v, want ErrPlace with advice", err)
	}
	if contents() != baseline {
		t.Error("the reader has changed the file or its log")
	}
}

// A file that cannot be made is explained by its cause, and nothing remains.
func TestCreateError(t *testing.T) {
	for err, want := range map[error]struct {
		kind error
		say  string
	}{
		unix.ENOSPC:     {store.ErrFull, "free some space"},
		unix.EDQUOT:     {store.ErrFull, "another folder with -d"},
		unix.EROFS:      {store.ErrNotWritable, "writable file system"},
		unix.EACCES:     {store.ErrNotWritable, "write permission"},
		unix.ENOENT:     {store.ErrNotWritable, "existing folder"},
		unix.EOPNOTSUPP: {store.ErrPlace, "local file system"},
		unix.EINVAL:     {store.ErrPlace, "local file system"},
	} {
		got := store.CreateError("results.db", &os.PathError{Op: "open", Path: "results.db", Err: err})
		if !errors.Is(got, want.kind) || !errors.Is(got, err) || !strings.Contains(got.Error(), want.say) {
			t.Errorf("%v is explained as %v, want %v with %q", err, got, want.kind, want.say)
		}
	}
}

// The codes of SQLite for a missing part of the file system have one meaning each.
func TestCodesOfPlaces(t *testing.T) {
	for code, want := range map[int]string{
		sqlite3.SQLITE_IOERR_SHMOPEN: "memory", sqlite3.SQLITE_IOERR_SHMSIZE: "memory", sqlite3.SQLITE_IOERR_SHMMAP: "memory", sqlite3.SQLITE_IOERR_SHMLOCK: "memory",
		sqlite3.SQLITE_IOERR_FSYNC: "sync", sqlite3.SQLITE_IOERR_DIR_FSYNC: "sync",
		sqlite3.SQLITE_IOERR_WRITE: "", sqlite3.SQLITE_IOERR_READ: "", sqlite3.SQLITE_FULL: "", sqlite3.SQLITE_BUSY: "", sqlite3.SQLITE_CANTOPEN: "",
	} {
		if got := store.Lacks(code); got != want {
			t.Errorf("the code %d means a lack of %q, want %q", code, got, want)
		}
	}
}

// TestPlaces injects errors of file systems into system calls on the results file.
//
// Invariant results-anywhere: Results need no shared memory, fsync or modes; a folder that is refused gets no file, and no new folder remains.
func TestPlaces(t *testing.T) {
	if dir := os.Getenv("TOUCHSTONE_TEST_PLACE"); dir != "" {
		recordTwice(t, filepath.Join(dir, "results.db"))
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	for _, tt := range []struct {
		calls, file string
		errors      []string
		want        string // the error; empty for none
	}{
		{"mmap", "results.db-shm", []string{"ENODEV", "EINVAL", "ENOMEM"}, ""},
		{"fsync,fdatasync", "", []string{"EINVAL", "ENOSYS", "EOPNOTSUPP"}, ""},
		{"fchmod", "results.db", []string{"EPERM", "EOPNOTSUPP", "ENOSYS"}, ""},
		{"fcntl", "results.db", []string{"ENOLCK", "EOPNOTSUPP", "EINVAL"}, "its file system has no locks"},
		{"fsync,fdatasync", "", []string{"EIO"}, "disk I/O error"},
	} {
		for _, fault := range tt.errors {
			t.Run(tt.calls+" "+fault, func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + tt.calls, "-e", fmt.Sprintf("inject=%s:error=%s", tt.calls, fault)}
				if tt.file != "" {
					args = append(args, "-P", filepath.Join(dir, tt.file))
				}
				cmd := exec.CommandContext(t.Context(), strace, append(args, os.Args[0], "-test.run=^TestPlaces$", "-test.v")...)
				cmd.Env = append(os.Environ(), "TOUCHSTONE_TEST_PLACE="+dir)
				out, err := cmd.CombinedOutput()
				if strings.Contains(string(out), "ptrace") {
					t.Skipf("this machine forbids ptrace: %s", out)
				}
				if tt.want == "" && err != nil || tt.want != "" && !strings.Contains(string(out), tt.want) {
					t.Errorf("the run ended with %v, want %q:\n%s", err, tt.want, out)
				}
				if left := folder(t, dir); tt.want != "" && len(left) > 0 {
					t.Errorf("files remain after the refusal: %q", slices.Sorted(maps.Keys(left)))
				}
			})
		}
	}
}

// recordTwice records a run in a new file, and once more after it was closed.
func recordTwice(t *testing.T, path string) {
	t.Helper()
	for i, id := range []string{"a", "b"} {
		s := open(t, path)
		must.Do(t, s.Create(t.Context(), emptyRun(id, i)))
		must.Do(t, s.Finish(t.Context(), id, result.Complete, time.Now(), nil))
		closeStore(t, s)
	}
}
