package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestModes: each lock has an open file, so that two locks of one process exclude each other like two of different processes.
func TestModes(t *testing.T) {
	file, dir := filepath.Join(t.TempDir(), "lock"), t.TempDir()
	for path, kind := range map[string]Kind{file: File, dir: Directory} {
		first, err := Try(path, kind, Shared)
		must.Do(t, err)
		second, err := Try(path, kind, Shared)
		must.Do(t, err)
		if err := second.Convert(Exclusive); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("an exclusive lock beside a shared one: %v", err)
		}
		second.Release()
		must.Do(t, first.Convert(Exclusive))
		if _, err := Try(path, kind, Shared); !errors.Is(err, ErrLocked) {
			t.Errorf("a shared lock beside an exclusive one: %v", err)
		}
		first.Release()
		last, err := Try(path, kind, Exclusive)
		must.Do(t, err)
		last.Release()
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder, err := Wait(t.Context(), path, File, Exclusive, func() { t.Error("nobody has the lock") })
	must.Do(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	if _, err := Wait(ctx, path, File, Exclusive, func() { cancel(reason) }); !errors.Is(err, reason) {
		t.Errorf("a wait that its caller ends: %v", err)
	}
	waits := 0
	next, err := Wait(t.Context(), path, File, Exclusive, func() { waits++; holder.Release() })
	must.Do(t, err)
	defer next.Release()
	if waits != 1 {
		t.Errorf("wait was called %d times, want once", waits)
	}
	// The file may vanish with its directory.
	_, err = Wait(t.Context(), path, File, Exclusive, func() { must.Do(t, os.RemoveAll(filepath.Dir(path))); next.Release() })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was removed: %v", err)
	}
}

// TestLinksAreNotFollowed: a link in a shared directory could lead to a file of another user.
func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "lock")))
	if l, err := Try(filepath.Join(dir, "lock"), File, Exclusive); !errors.Is(err, unix.ELOOP) {
		t.Errorf("Try() = %v, %v", l, err)
	}
}
