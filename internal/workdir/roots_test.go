package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A user without a home, as in services and containers, has roots too.
func TestRootsWithoutHome(t *testing.T) {
	fallback := filepath.Join("/var/tmp", "touchstone-"+strconv.Itoa(os.Getuid()))
	for name, c := range map[string]struct{ home, cache, want string }{
		"a home":                   {"/home/u", "", "/home/u/.cache/touchstone/runs"},
		"a cache without a home":   {"", "/cache", "/cache/touchstone/runs"},
		"neither":                  {"", "", fallback},
		"a relative path of cache": {"/home/u", "cache", fallback},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_CACHE_HOME", c.cache)
		if roots := userRoots(); roots.Data != c.want || !filepath.IsAbs(roots.State) {
			t.Errorf("%s: the roots are %+v, want data in %s", name, roots, c.want)
		}
	}
}

// TestLockOfARemovedFile: a process that got the lock of a file which another process has removed meanwhile holds no lock.
func TestLockOfARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), lockName)
	f, err := lock(path, unix.LOCK_EX)
	must.Do(t, err)
	defer func() { must.Do(t, f.Close()) }()
	must.Do(t, current(f, path))
	must.Do(t, os.Remove(path))
	if err := current(f, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is removed: %v", err)
	}
	must.Do(t, os.WriteFile(path, nil, 0o600))
	if err := current(f, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another file is at the path: %v", err)
	}
}
