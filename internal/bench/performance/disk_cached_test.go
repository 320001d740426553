package performance

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A written file is in the page cache. After it is written back and dropped it is not, and reading brings it back.
func TestCachedBytes(t *testing.T) {
	dir := t.TempDir()
	const size = 1<<20 + 100 // ends within a page
	path := filepath.Join(dir, "sub", "file")
	data := make([]byte, size)
	_, _ = rand.Read(data)
	must.Do(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)))
	look := func(moment string) int64 {
		cached, n, err := cachedBytes(dir)
		if err != nil || n != size {
			t.Fatalf("%s: %d of %d bytes, %v; the file has %d", moment, cached, n, err, size)
		}
		return cached
	}
	if cached := look("written"); cached != size {
		t.Errorf("%d of %d bytes are cached after writing", cached, size)
	}
	f, err := os.Open(path)
	must.Do(t, err)
	var statfs unix.Statfs_t
	must.Do(t, errors.Join(unix.Fstatfs(int(f.Fd()), &statfs), f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()))
	cached := look("dropped")
	if statfs.Type == unix.TMPFS_MAGIC {
		if !inCache(cached, size) {
			t.Errorf("%d of %d bytes are cached in memory", cached, size)
		}
		return
	}
	if inCache(cached, size) {
		t.Errorf("%d of %d bytes are cached after dropping", cached, size)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if cached := look("read"); cached != size {
		t.Errorf("%d of %d bytes are cached after reading", cached, size)
	}
}

func TestCachedBytesOfNothing(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	if cached, size, err := cachedBytes(dir); cached != 0 || size != 0 || err != nil {
		t.Errorf("cachedBytes of an empty file = %d of %d, %v", cached, size, err)
	}
	if _, _, err := cachedBytes(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("cachedBytes of nothing: %v", err)
	}
}
