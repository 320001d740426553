package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// other is a user who is not trusted.
const other = 12345

// TestCacheOfOthers: OpenCache refuses a cache that another user has prepared or can change, and changes nothing outside it.
//
// Invariant cache-links: The image cache follows no link of another user.
func TestCacheOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir, victim string) error
		root  bool
		want  string
	}{
		"a link in place of blobs": {func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "blobs")) }, false, "blobs is a symbolic link; remove it"},
		"a link to blobs": {func(dir, victim string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "blobs"), 0o700), os.Symlink(victim, filepath.Join(dir, "blobs", "sha256")))
		}, false, "sha256 is a symbolic link"},
		"a link in place of tmp": {func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "tmp")) }, false, "tmp is a symbolic link"},
		"a link to the index": {func(dir, victim string) error {
			return os.Symlink(filepath.Join(victim, "file"), filepath.Join(dir, "index.json"))
		}, false, "index.json is a symbolic link"},
		"a cache for all": {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, false, "cache can be changed by other users"},
		"another user's rootfs": {func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "rootfs"), 0o700), os.Chown(filepath.Join(dir, "rootfs"), other, other))
		}, true, "rootfs belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root can give files to other users")
			}
			top := t.TempDir()
			dir, victim := filepath.Join(top, "cache"), filepath.Join(top, "victim")
			must.Do(t, os.Mkdir(dir, 0o755), os.Mkdir(victim, 0o755), os.WriteFile(filepath.Join(victim, "file"), []byte("{}"), 0o644), c.spoil(dir, victim))
			_, err := OpenCache(dir)
			if unsafe := (*trust.Error)(nil); !errors.As(err, &unsafe) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), CacheVariable) {
				t.Errorf("OpenCache gives %v, want %q", err, c.want)
			}
			info, err := os.Stat(victim)
			entries, listErr := os.ReadDir(victim)
			if err := errors.Join(err, listErr); err != nil || info.Mode().Perm() != 0o755 || len(entries) != 1 {
				t.Errorf("the other directory has mode %v and %v, %v", info.Mode(), entries, err)
			}
		})
	}
}

// TestLinkToCache: the user may put the cache on another disk.
func TestLinkToCache(t *testing.T) {
	top := t.TempDir()
	link := filepath.Join(top, "link")
	must.Do(t, os.Mkdir(filepath.Join(top, "disk"), 0o755), os.Symlink("disk", link))
	for range 2 {
		_, err := OpenCache(link)
		must.Do(t, err)
	}
	if info, err := os.Stat(filepath.Join(top, "disk", "blobs", "sha256")); err != nil || info.Mode().Type() != fs.ModeDir {
		t.Errorf("blobs are %v, %v", info, err)
	}
}

// TestSweepOfOthers: Sweep removes nothing through a link of another user.
//
// Invariant cache-links.
func TestSweepOfOthers(t *testing.T) {
	top := t.TempDir()
	victim := filepath.Join(top, "victim", "load-1")
	must.Do(t, os.MkdirAll(victim, 0o755), os.Mkdir(filepath.Join(top, "cache"), 0o755), os.Symlink("../victim", filepath.Join(top, "cache", "tmp")))
	if removals, err := Sweep(filepath.Join(top, "cache")); err == nil || removals != nil {
		t.Errorf("Sweep removed %q, %v", removals, err)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}
