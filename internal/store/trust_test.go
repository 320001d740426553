package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// other is a user who is not trusted.
const other = 12345

// TestFilesOfOthers: a file that another user can change is not opened for writing, and nothing in its folder changes. It is readable,
// unless SQLite would have to write to read it.
//
// Invariant foreign-results: No plan is executed from a results file that another user can change, and nothing is written beside it.
func TestFilesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(path string) error
		root     bool
		readable bool
		want     string
	}{
		"a file that all can write to":   {func(path string) error { return os.Chmod(path, 0o666) }, false, true, "can be changed by other users); if you trust the content, run chmod go-w "},
		"a folder that all can write to": {func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) }, false, true, "can be changed by other users"},
		"a link beside the file":         {func(path string) error { return os.Symlink("/etc/passwd", path+"-wal") }, false, false, "-wal is a symbolic link); remove it"},
		"another user's log": {func(path string) error {
			return errors.Join(os.WriteFile(path+"-wal", []byte("x"), 0o600), os.Chown(path+"-wal", other, other))
		}, true, false, "-wal belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root can give files to other users")
			}
			path := newFile(t, 1)
			must.Do(t, c.spoil(path))
			baseline := folder(t, filepath.Dir(path))
			wantRefusal := func(err error) {
				t.Helper()
				if !errors.Is(err, store.ErrUntrusted) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want ErrUntrusted with %q", err, c.want)
				}
			}
			_, err := store.Open(t.Context(), path)
			wantRefusal(err)
			wantRefusal(store.CheckTrust(path))
			reader, err := store.OpenReadOnly(t.Context(), path)
			if !c.readable {
				wantRefusal(err)
			} else {
				must.Do(t, err)
				run, err := reader.Run(t.Context(), store.Latest)
				must.Do(t, err)
				if len(run.Trials) != 1 {
					t.Errorf("the run has %d trials", len(run.Trials))
				}
				closeStore(t, reader)
			}
			expect.Equal(t, "the folder changed", baseline, folder(t, filepath.Dir(path)))
		})
	}
}

// TestNoFileInFolderOfOthers: no file is created where others can replace it.
func TestNoFileInFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o777))
	if _, err := store.Open(t.Context(), filepath.Join(dir, "touchstone.db")); !errors.Is(err, store.ErrUntrusted) {
		t.Errorf("Open gives %v", err)
	}
	if left := folder(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestReadableFilesOpen: others may read a file.
func TestReadableFilesOpen(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644} {
		path := newFile(t, 1)
		must.Do(t, errors.Join(os.Chmod(path, mode), os.Chmod(filepath.Dir(path), 0o755)))
		for _, open := range []func(context.Context, string) (*store.Store, error){store.Open, store.OpenReadOnly} {
			s, err := open(t.Context(), path)
			must.Do(t, err)
			closeStore(t, s)
		}
	}
}
