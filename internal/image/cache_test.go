package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/filelock"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// made builds an image for linux/amd64 from layers, which are tar archives.
func made(t testing.TB, layers ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, content := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		must.Do(t, err)
		image, err = mutate.AppendLayers(image, layer)
		must.Do(t, err)
	}
	config, err := image.ConfigFile()
	must.Do(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	image, err = mutate.ConfigFile(image, config)
	must.Do(t, err)
	return image
}

func testCache(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(filepath.Join(t.TempDir(), "cache"))
	must.Do(t, err)
	return c
}

func put(t *testing.T, c *Cache, name string, image v1.Image) v1.Image {
	t.Helper()
	entry, err := c.Put(t.Context(), name, image)
	must.Do(t, err)
	return entry
}

func regularFile(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}
}

func TestCache(t *testing.T) {
	c := testCache(t)
	one, two := made(t, archive(t, regularFile("one"))), made(t, archive(t, regularFile("one")), archive(t, regularFile("two")))
	entry := put(t, c, "one", one)
	put(t, c, "two", two)
	wantConsistentDigest(t, entry, one)
	second, err := c.Get("two")
	must.Do(t, err)
	wantConsistentDigest(t, second, two)
	entries, err := c.List()
	if err != nil || len(entries) != 2 {
		t.Fatalf("%+v, %v; want two images", entries, err)
	}
	if e := entries[1]; e.Name != "two" || e.Platform != "linux/amd64" || e.Size == 0 || e.Unpacked || e.Problem != "" || e.Digest != digest(t, two).String() {
		t.Errorf("entry %+v", e)
	}
	must.Do(t, c.Verify(t.Context(), "one"))
	if _, err := c.Get("three"); !errors.Is(err, ErrNoImage) {
		t.Errorf("a missing image: %v", err)
	}
	for _, name := range []string{"", "a b", "a\n"} {
		if _, err := c.Put(t.Context(), name, one); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}

	// A shared layer stays as long as one of its images.
	count := len(blobsOf(t, c))
	must.Do(t, c.Remove(t.Context(), "two"), c.Remove(t.Context(), "two"))
	if left := len(blobsOf(t, c)); left != count-3 {
		t.Errorf("%d of %d blobs are left, want three less: a layer, a configuration and a manifest", left, count)
	}
	must.Do(t, c.Verify(t.Context(), "one"))
	put(t, c, "one", two)
	if image, err := c.Get("one"); err != nil || digest(t, image) != digest(t, two) {
		t.Errorf("the name refers to the earlier image (%v)", err)
	}
}

func blobsOf(t *testing.T, c *Cache) []string {
	t.Helper()
	blobs, err := filepath.Glob(c.path("blobs", "*", "*"))
	must.Do(t, err)
	return blobs
}

// wantNothing checks that no blob and no temporary file is left in the cache.
func wantNothing(t *testing.T, c *Cache) {
	t.Helper()
	if left, err := os.ReadDir(c.path("tmp")); err != nil || len(left) > 0 || len(blobsOf(t, c)) > 0 {
		t.Errorf("%v and %v are left, %v", left, blobsOf(t, c), err)
	}
}

func wantConsistentDigest(t *testing.T, got, want v1.Image) {
	t.Helper()
	if digest(t, got) != digest(t, want) {
		t.Errorf("the digest is %v, want %v", digest(t, got), digest(t, want))
	}
}

// The cache must detect damage, not use a damaged image, and repair it when the image is stored again.
func TestCacheDamage(t *testing.T) {
	image := made(t, archive(t, regularFile("file")))
	manifest, err := image.Manifest()
	must.Do(t, err)
	layer := manifest.Layers[0]
	cut := func(path string) error { return os.Truncate(path, 10) }
	flip := func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		return os.WriteFile(path, content, 0o644)
	}
	tests := []struct {
		name   string
		path   func(*Cache) string
		damage func(string) error
		late   bool // detected only when the layers are read
	}{
		{"manifest cut off", func(c *Cache) string { return c.blob(digest(t, image)) }, cut, false},
		{"manifest changed", func(c *Cache) string { return c.blob(digest(t, image)) }, flip, false},
		{"manifest gone", func(c *Cache) string { return c.blob(digest(t, image)) }, os.Remove, false},
		{"configuration changed", func(c *Cache) string { return c.blob(manifest.Config.Digest) }, flip, false},
		{"configuration gone", func(c *Cache) string { return c.blob(manifest.Config.Digest) }, os.Remove, false},
		{"layer cut off", func(c *Cache) string { return c.blob(layer.Digest) }, cut, false},
		{"layer gone", func(c *Cache) string { return c.blob(layer.Digest) }, os.Remove, false},
		{"layer changed", func(c *Cache) string { return c.blob(layer.Digest) }, flip, true},
		{"index cut off", func(c *Cache) string { return c.path("index.json") }, cut, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := testCache(t)
			put(t, c, "image", image)
			must.Do(t, test.damage(test.path(c)))
			entry, err := c.Get("image")
			if test.late {
				must.Do(t, err)
				if _, err := c.Rootfs(t.Context(), entry); !errors.Is(err, ErrDamaged) {
					t.Errorf("unpacking: %v, want ErrDamaged", err)
				}
				if left, err := filepath.Glob(c.path("rootfs", "*", "*")); err != nil || len(left) > 0 {
					t.Errorf("%v is left of the damaged image, %v", left, err)
				}
				err = c.Verify(t.Context(), "image")
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%v, want ErrDamaged", err)
			}
			put(t, c, "image", image)
			if err := c.Verify(t.Context(), "image"); err != nil {
				t.Errorf("stored again: %v", err)
			}
		})
	}
}

// Put must not store a layer with a wrong digest.
func TestPutChecksDigests(t *testing.T) {
	c := testCache(t)
	image := made(t, archive(t, regularFile("file")))
	if _, err := c.Put(t.Context(), "lie", lyingImage{image}); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
	deadCtx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if _, err := c.Put(deadCtx, "stopped", image); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("cancelled: %v", err)
	}
	if entries, err := c.List(); err != nil || len(entries) > 0 {
		t.Errorf("the cache has %v (%v), want nothing", entries, err)
	}
	wantNothing(t, c)
}

// lyingImage has a layer with the right size and a wrong digest.
type lyingImage struct{ v1.Image }

func (l lyingImage) Layers() ([]v1.Layer, error) {
	layers, err := l.Image.Layers()
	return []v1.Layer{lyingLayer{layers[0]}}, err
}

type lyingLayer struct{ v1.Layer }

func (l lyingLayer) Compressed() (io.ReadCloser, error) {
	size, err := l.Size()
	return io.NopCloser(io.LimitReader(zeros{}, size)), err
}

func (lyingLayer) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(zeros{}, 1024)), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Concurrent processes store, list, unpack and prune, and none sees a partial image.
func TestConcurrentCacheUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	images := []v1.Image{made(t, archive(t, regularFile("a"))), made(t, archive(t, regularFile("b")), archive(t, regularFile("c")))}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			c, err := OpenCache(dir)
			if err != nil {
				t.Error(err)
				return
			}
			name := string(rune('a' + i%3))
			entry, err := c.Put(t.Context(), name, images[i%2])
			if err != nil {
				t.Error(err)
				return
			}
			if i%4 == 0 {
				if dir, err := c.Rootfs(t.Context(), entry); err != nil {
					t.Error(err)
				} else if _, err := os.Stat(filepath.Join(dir, "a")); i%2 == 0 && err != nil {
					t.Error(err)
				}
			}
			if entries, err := c.List(); err != nil {
				t.Error(err)
			} else {
				for _, e := range entries {
					if e.Problem != "" && !strings.Contains(e.Problem, "no such file") {
						t.Errorf("%+v", e)
					}
				}
			}
		})
	}
	wg.Wait()
	c, err := OpenCache(dir)
	must.Do(t, err)
	for _, name := range []string{"a", "b", "c"} {
		must.Do(t, c.Verify(t.Context(), name))
	}
}

// Other users cannot read the cache, whatever the umask. OpenCache also removes their permissions from an older cache.
func TestCacheIsPrivate(t *testing.T) {
	top := t.TempDir()
	setUmask(t, 0)
	dir := filepath.Join(top, "cache")
	must.Do(t, os.Mkdir(dir, 0o755))
	must.Do(t, os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755))
	old, err := OpenCache(dir)
	must.Do(t, err)
	cache, err := OpenCache(filepath.Join(top, "fresh"))
	must.Do(t, err)
	for _, c := range []*Cache{cache, old} {
		if _, err := c.Rootfs(t.Context(), put(t, c, "mine", made(t, archive(t, regularFile("secret"))))); err != nil {
			t.Fatal(err)
		}
		count := 0
		err := filepath.WalkDir(c.dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			count++
			info, err := d.Info()
			if err == nil && info.Mode()&0o077 != 0 && name != old.dir && name != old.path("blobs", "sha256") {
				t.Errorf("%s has the mode %v", name, info.Mode())
			}
			if name == c.path("rootfs") && err == nil {
				return fs.SkipDir // files below have the modes of the image
			}
			return err
		})
		if err != nil || count < 10 {
			t.Errorf("%d files were checked, %v", count, err)
		}
	}
}

// Sweep removes files of killed processes, and keeps files of running processes and files that do not belong to the cache.
func TestSweep(t *testing.T) {
	c := testCache(t)
	names := []string{OwnPrefix + "amd64-0123", UpdatePrefix + "amd64", "put-1", "import-2", "load-3"}
	for _, name := range names {
		must.Do(t, os.MkdirAll(c.path("tmp", name, "left"), 0o755))
	}
	must.Do(t, os.WriteFile(c.path("tmp", names[0]+".lock"), nil, 0o600), os.Mkdir(c.path("tmp", "of-others"), 0o700))
	building, endBuild, err1 := c.Exclusive(t.Context(), OwnPrefix+"arm64-4567", nil)
	importing, endImport, err2 := c.temporary(t.Context(), "import")
	must.Do(t, err1, err2)
	removals, err := Sweep(c.dir)
	if err != nil || len(removals) != len(names) {
		t.Errorf("removed %v, %v; want %v", removals, err, names)
	}
	for _, name := range names {
		if _, err := os.Stat(c.path("tmp", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s still exists: %v", name, err)
		}
	}
	for _, dir := range []string{building, importing, c.path("tmp", "of-others")} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	must.Do(t, endBuild(), endImport())
	if second, err := Sweep(c.dir); err != nil || len(second) > 0 {
		t.Errorf("the second Sweep removed %v, %v", second, err)
	}
	noDir := filepath.Join(t.TempDir(), "none")
	if removals, err := Sweep(noDir); err != nil || removals != nil {
		t.Errorf("without a cache Sweep removed %v, %v", removals, err)
	}
	if _, err := os.Stat(noDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sweep created a cache: %v", err)
	}
}

// Concurrent sweeps must not remove a new directory of a running process.
func TestConcurrentSweep(t *testing.T) {
	c := testCache(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				dir, release, err := c.temporary(t.Context(), "put")
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), release()); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				if _, err := Sweep(c.dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantNothing(t, c)
}

func TestExclusive(t *testing.T) {
	c := testCache(t)
	if err := os.MkdirAll(c.path("tmp", "thing", "left"), 0o755); err != nil { // a leftover of a killed process
		t.Fatal(err)
	}
	dir, release, err := c.Exclusive(t.Context(), "thing", func() { t.Error("no other process has the lock") })
	must.Do(t, err)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it contains %v, %v", left, err)
	}
	waitCtx, stop := context.WithCancelCause(t.Context())
	calls := 0
	if _, _, err := c.Exclusive(waitCtx, "thing", func() { calls++; stop(errors.New("enough")) }); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("the context does not end the wait: %v", err)
	}
	if calls != 1 {
		t.Errorf("wait was called %d times", calls)
	}
	must.Do(t, c.Prune(t.Context(), func(string) bool { return true }))
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("Sweep removed a directory in use: %v", err)
	}
	must.Do(t, release())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory still exists: %v", err)
	}
	must.Do(t, os.MkdirAll(c.path("tmp", "put-1", "left"), 0o755), c.Prune(t.Context(), func(string) bool { return true }))
	if _, err := os.Stat(c.path("tmp", "put-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover of a killed process still exists: %v", err)
	}
}

func TestRootfsIsRepairedAndLocked(t *testing.T) {
	c := testCache(t)
	image := put(t, c, "image", made(t, archive(t, regularFile("file"))))
	dir, err := c.Rootfs(t.Context(), image)
	must.Do(t, err)
	baseline, err := os.Stat(filepath.Join(dir, "file"))
	must.Do(t, err)
	// Runtimes create mount points, which are not damage.
	must.Do(t, os.Mkdir(filepath.Join(dir, "mnt"), 0o755))
	if second, err := c.Rootfs(t.Context(), image); err != nil || second != dir {
		t.Errorf("%s, %v; want %s", second, err, dir)
	}
	if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || !os.SameFile(baseline, info) {
		t.Errorf("the image was unpacked again: %v", err)
	}
	// The lock prevents its removal, even if the image is removed.
	if err := c.Remove(t.Context(), "image"); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("the locked directory was removed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}

	// In another cache no process has the lock. There the directory is damaged and repaired.
	c = testCache(t)
	image = put(t, c, "image", made(t, archive(t, regularFile("file"))))
	name := digest(t, image).Hex
	must.Do(t, c.unpackRootfs(t.Context(), image, name))
	file := filepath.Join(c.path("rootfs", name), "file")
	for damage, do := range map[string]func() error{
		"changed": func() error { return os.WriteFile(file, []byte("changed"), 0o644) },
		"mode":    func() error { return os.Chmod(file, 0o600) },
		"removed": func() error { return os.Remove(file) },
		"no list": func() error { return os.Remove(c.path("rootfs", name+".list")) },
	} {
		if err := c.unchanged(name); err != nil {
			t.Fatalf("before %s: %v", damage, err)
		}
		must.Do(t, do())
		if err := c.unchanged(name); err == nil {
			t.Errorf("%s: not detected", damage)
		}
		must.Do(t, c.unpackRootfs(t.Context(), image, name))
	}
	must.Do(t, c.Remove(t.Context(), "image"))
	if _, err := os.Stat(c.path("rootfs", name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root file system still exists: %v", err)
	}
}

func TestRequireSpace(t *testing.T) {
	must.Do(t, RequireSpace(t.TempDir(), 1))
	err := RequireSpace(t.TempDir(), 1<<60)
	if err == nil || !strings.Contains(err.Error(), "are needed") || !strings.Contains(err.Error(), CacheVariable) {
		t.Errorf("%v, want the free space and the remedy in it", err)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(CacheVariable, "/some/where")
	if dir, err := CacheDir(); err != nil || dir != "/some/where" {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv(CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "/home/user/cache")
	want := "/home/user/cache/touchstone"
	if unix.Geteuid() == 0 {
		want = "/var/cache/touchstone"
	}
	if dir, err := CacheDir(); err != nil || dir != want {
		t.Errorf("%s, %v; want %s", dir, err, want)
	}
	if _, err := OpenCache("/proc/no/cache"); err == nil || !strings.Contains(err.Error(), CacheVariable) {
		t.Errorf("a cache in an invalid directory: %v", err)
	}
}
