package oci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The runtime leaves mounts in its directory: two on one file, as runsc does when it starts two sandboxes at once, and one
// that hides them.
func TestCloseUnmounts(t *testing.T) {
	e := &Engine{dir: filepath.Join(t.TempDir(), "0")}
	root := filepath.Join(e.dir, "root")
	file := filepath.Join(root, "null-netns")
	must.Do(t, os.MkdirAll(root, 0o700))
	must.Do(t, os.WriteFile(file, nil, 0o600))
	t.Cleanup(func() { // of a Close that does not work, so that the directory can go
		for unix.Unmount(root, unix.MNT_DETACH) == nil || unix.Unmount(file, unix.MNT_DETACH) == nil {
		}
	})
	for _, m := range []struct{ source, target string }{
		{"/proc/self/ns/net", file}, {"/proc/self/ns/net", file}, {e.dir, root},
	} {
		err := unix.Mount(m.source, m.target, "", unix.MS_BIND, "")
		if errors.Is(err, unix.EPERM) {
			t.Skip("this user may not mount")
		}
		if err != nil {
			t.Fatalf("mount %s: %v", m.target, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close() with mounts in the directory: %v", err)
	}
	if _, err := os.Stat(e.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close the directory is still there (%v)", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close() once more: %v", err)
	}
}
