package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/filelock"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// CacheVariable is the environment variable that names another directory for the cache.
const CacheVariable = "TOUCHSTONE_CACHE"

// ErrDamaged reports that content of a cache or an archive does not match its digest. The image must be built or loaded
// again.
var ErrDamaged = errors.New("it is damaged")

// ErrNoImage reports that the cache has no image with the name.
var ErrNoImage = errors.New("the image does not exist")

// indexName is the name of the list of images.
const indexName = "index.json"

// refName is the annotation with the name of an image in an OCI layout.
const refName = "org.opencontainers.image.ref.name"

// Cache stores images on disk as one OCI layout, and the root file systems that were unpacked from them. Several processes may
// use it at once: files appear under their final name only when they are complete. A killed process leaves files in tmp/, which Sweep
// removes.
//
// Other users cannot read the cache, because it may contain private images and set-user-ID programs.
type Cache struct{ dir string }

// CacheDir returns the default directory of the cache.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/cache/touchstone", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w; set %s to a directory", err, CacheVariable)
	}
	return filepath.Join(dir, "touchstone"), nil
}

// OpenCache opens the cache in dir, and creates the directory if necessary. If dir is empty it opens the cache in CacheDir. It refuses a
// cache that another user can change.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		var err error
		if dir, err = CacheDir(); err != nil {
			return nil, err
		}
	}
	name, err := trust.MakeDirectory(dir)
	for _, sub := range subdirectories {
		if err == nil {
			err = makePrivate(filepath.Join(name, sub))
		}
	}
	if err == nil {
		if err = trust.Entry(filepath.Join(name, indexName)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the image cache: %w; or set %s to a directory of your own", err, CacheVariable)
	}
	return &Cache{dir: name}, nil
}

// subdirectories are the directories of a cache, parents first.
var subdirectories = []string{"blobs", "blobs/sha256", "tmp", "rootfs"}

// makePrivate creates a directory of the cache if it is missing. It removes the permissions of others from a directory of an older
// version. The directory above it may contain other files of the user, so it keeps its mode.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := trust.Entry(dir); err != nil {
		return err
	}
	d, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) { // root owns the cache
		return nil
	}
	if err != nil {
		return err
	}
	info, err := d.Stat()
	if err == nil && info.Mode()&0o077 != 0 {
		if err = d.Chmod(0o700); errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}
	return errors.Join(err, d.Close())
}

// Dir returns the cache's directory.
func (c *Cache) Dir() string { return c.dir }

func (c *Cache) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// Entry is an image of the cache.
type Entry struct {
	Name     string `json:"name"`
	Digest   string `json:"digest"`
	Platform string `json:"platform"`
	// Size is the compressed size of the image, in bytes.
	Size int64 `json:"size"`
	// Unpacked is true if the cache has the root file system of the image.
	Unpacked bool `json:"unpacked"`
	// Problem describes damage to the image. It is empty without damage.
	Problem string `json:"problem,omitempty"`
}

// List returns the images of the cache, sorted by name.
func (c *Cache) List() ([]Entry, error) {
	index, err := c.index()
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for _, d := range index.Manifests {
		e := Entry{Name: d.Annotations[refName], Digest: d.Digest.String()}
		if d.Platform != nil {
			e.Platform = d.Platform.String()
		}
		if _, err := os.Stat(c.path("rootfs", d.Digest.Hex)); err == nil {
			e.Unpacked = true
		}
		if image, err := c.open(d); err != nil {
			e.Problem = err.Error()
		} else if manifest, err := image.Manifest(); err == nil {
			e.Size = sizeOf(manifest)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// sizeOf returns the compressed size of an image, in bytes.
func sizeOf(m *v1.Manifest) int64 {
	size := m.Config.Size
	for _, l := range m.Layers {
		size += l.Size
	}
	return size
}

// Get returns the image with a name. The error wraps ErrNoImage if the cache has none, and ErrDamaged if the image is incomplete. Get
// compares the manifest and the configuration with their digests, but checks only the size of layers: Verify and Rootfs check
// their content.
func (c *Cache) Get(name string) (v1.Image, error) {
	index, err := c.index()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(index.Manifests, isNamed(name))
	if i < 0 {
		return nil, fmt.Errorf("image %s: %w in %s", name, ErrNoImage, c.dir)
	}
	image, err := c.open(index.Manifests[i])
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return image, nil
}

func isNamed(name string) func(v1.Descriptor) bool {
	return func(d v1.Descriptor) bool { return d.Annotations[refName] == name }
}

// open returns an image of the index if it is complete.
func (c *Cache) open(d v1.Descriptor) (v1.Image, error) {
	// The library would read the index again, and by then it may have another image. The root is closed with the image.
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, err
	}
	var manifest *v1.Manifest
	image, err := untrustedLayout{root}.imageOf(d)
	if err == nil {
		manifest, err = image.Manifest()
	}
	if err == nil {
		_, err = image.RawConfigFile()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, l := range manifest.Layers {
		if info, err := os.Lstat(c.blob(l.Digest)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		} else if info.Size() != l.Size {
			return nil, fmt.Errorf("%w: layer %s has %d bytes of %d", ErrDamaged, l.Digest, info.Size(), l.Size)
		}
	}
	return image, nil
}

func (c *Cache) blob(h v1.Hash) string { return c.path("blobs", h.Algorithm, h.Hex) }

func digestOf(content []byte) v1.Hash {
	// A read from memory does not fail.
	h, _, _ := v1.SHA256(bytes.NewReader(content))
	return h
}

// Verify compares the complete image with its digests. The error wraps ErrDamaged if a digest differs.
func (c *Cache) Verify(ctx context.Context, name string) error {
	image, err := c.Get(name)
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, l := range manifest.Layers {
		if err := verifyBlob(ctx, c.blob(l.Digest), l.Digest); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// verifyBlob compares a file with its digest.
func verifyBlob(ctx context.Context, path string, want v1.Hash) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	got, _, err := v1.SHA256(contextReader{ctx, file})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: %s has the digest %s", ErrDamaged, path, got)
	}
	return nil
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Put stores an image under a name, replaces an earlier image with this name, and returns the image in the cache. The next Remove or
// Prune deletes the blobs of the earlier image. Put compares the complete image with its digests. If a digest differs the error
// wraps ErrDamaged, and Put stores nothing.
func (c *Cache) Put(ctx context.Context, name string, image v1.Image) (v1.Image, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("store image as %q: the name must not be empty or contain spaces", name)
	}
	d, err := c.put(ctx, name, image)
	if err == nil {
		image, err = c.open(*d) // by digest, because another process may have replaced the name
	}
	if err != nil {
		return nil, fmt.Errorf("store image %s in %s: %w", name, c.dir, err)
	}
	return image, nil
}

func (c *Cache) put(ctx context.Context, name string, image v1.Image) (d *v1.Descriptor, err error) {
	staged, release, err := c.temporary(ctx, "put")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	d, err = stage(ctx, staged, image, defaultLimits.reserve)
	if err != nil {
		return nil, c.addAdvice(err)
	}
	d.Annotations = map[string]string{refName: name}
	return d, c.change(ctx, func(index *v1.IndexManifest) error {
		blobs, err := os.ReadDir(staged)
		if err != nil {
			return err
		}
		for _, blob := range blobs {
			if err := os.Rename(filepath.Join(staged, blob.Name()), c.path("blobs", "sha256", blob.Name())); err != nil {
				return err
			}
		}
		index.Manifests = append(slices.DeleteFunc(index.Manifests, isNamed(name)), *d)
		return c.writeIndex(index)
	})
}

// stage writes the blobs of an image to a directory and verifies the written files.
func stage(ctx context.Context, dir string, image v1.Image, minimum reserve) (*v1.Descriptor, error) {
	blobs, err := blobsIn(image)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // the files in it are closed
	space := &spaceGuard{dir: dir, reserve: minimum}
	for _, b := range blobs {
		r, err := b.open()
		if err != nil {
			return nil, err
		}
		err = errors.Join(fill(root, b.digest.Hex, contextReader{ctx, r}, space), r.Close())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = verifyBlob(ctx, filepath.Join(dir, b.digest.Hex), b.digest)
		}
		if err != nil {
			return nil, err
		}
	}
	d, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	d.Platform = config.Platform()
	return d, nil
}

// Remove removes an image, its root file system, and all blobs that no other image shares. It is idempotent. It keeps a root file system
// that a run uses, and returns an error.
func (c *Cache) Remove(ctx context.Context, name string) error {
	return c.discard(ctx, isNamed(name))
}

// Prune removes images that keep rejects, leftovers of killed processes, and files that belong to no image. It keeps a
// root file system that a run uses, and returns an error.
func (c *Cache) Prune(ctx context.Context, keep func(name string) bool) error {
	err := c.discard(ctx, func(d v1.Descriptor) bool { return !keep(d.Annotations[refName]) })
	_, sweepErr := Sweep(c.dir)
	return errors.Join(err, sweepErr)
}

func (c *Cache) discard(ctx context.Context, unwanted func(v1.Descriptor) bool) error {
	return c.change(ctx, func(index *v1.IndexManifest) error {
		index.Manifests = slices.DeleteFunc(index.Manifests, unwanted)
		if err := c.writeIndex(index); err != nil {
			return err
		}
		return c.collect(index)
	})
}

// change calls edit with the index while no other process changes it. A damaged index counts as empty: its images must be stored again.
func (c *Cache) change(ctx context.Context, edit func(*v1.IndexManifest) error) error {
	l, err := filelock.Wait(ctx, c.path("lock"), filelock.File, filelock.Exclusive, nil)
	if err != nil {
		return fmt.Errorf("lock the image cache: %w", err)
	}
	defer l.Release()
	index, err := c.index()
	if errors.Is(err, ErrDamaged) {
		index, err = emptyIndex(), nil
	}
	if err != nil {
		return err
	}
	return edit(index)
}

// collect removes the blobs and root file systems that belong to no image of the index.
func (c *Cache) collect(index *v1.IndexManifest) error {
	references := map[string]bool{}
	for _, d := range index.Manifests {
		references[d.Digest.Hex] = true
		image, err := c.open(d)
		if err != nil {
			continue // a damaged image must be built or loaded again
		}
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		references[manifest.Config.Digest.Hex] = true
		for _, l := range manifest.Layers {
			references[l.Digest.Hex] = true
		}
	}
	blobs, blobsErr := os.ReadDir(c.path("blobs", "sha256"))
	trees, treesErr := os.ReadDir(c.path("rootfs"))
	errs := []error{blobsErr, treesErr}
	for _, b := range blobs {
		if !references[b.Name()] {
			errs = append(errs, os.Remove(c.path("blobs", "sha256", b.Name())))
		}
	}
	for _, t := range trees {
		if t.IsDir() && !references[t.Name()] {
			errs = append(errs, c.removeRootfs(t.Name()))
		}
	}
	return errors.Join(errs...)
}

// index reads the list of images.
func (c *Cache) index() (*v1.IndexManifest, error) {
	content, err := os.ReadFile(c.path(indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return emptyIndex(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the image cache: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", c.path(indexName), ErrDamaged, err)
	}
	return index, nil
}

func emptyIndex() *v1.IndexManifest {
	return &v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
}

func (c *Cache) writeIndex(index *v1.IndexManifest) error {
	content, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		replace(c.path("oci-layout"), []byte(layoutMark), 0o600),
		replace(c.path(indexName), append(content, '\n'), 0o600))
}

// layoutMark is the content of oci-layout, the file that identifies an OCI layout.
const layoutMark = `{"imageLayoutVersion":"1.0.0"}`
