package image

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Rootfs gives a directory with the file system of an image: that of its layers on top of each
// other. It is unpacked once for each image; the next call finds it, and makes sure
// that no file in it is missing or was changed. It is held until the process ends: nobody removes it
// meanwhile. It is for reading only.
//
// The error wraps ErrDamaged if a layer is not what its digest says. Layers are refused that lead out of
// the directory, have devices, or grow without bounds.
func (c *Cache) Rootfs(ctx context.Context, image v1.Image) (string, error) {
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("unpack image: %w", err)
	}
	dir, err := c.rootfs(ctx, image, digest.Hex)
	if err != nil {
		return "", fmt.Errorf("unpack image %s: %w", digest, err)
	}
	return dir, nil
}

func (c *Cache) rootfs(ctx context.Context, image v1.Image, name string) (string, error) {
	dir := c.path("rootfs", name)
	lock, err := lockFile(ctx, dir+".lock", unix.LOCK_SH, nil)
	if err != nil {
		return "", err
	}
	if c.unchanged(name) == nil {
		return dir, nil
	}
	lock.release()
	if lock, err = lockFile(ctx, dir+".lock", unix.LOCK_EX, nil); err != nil {
		return "", err
	}
	if c.unchanged(name) != nil { // nobody has mended it meanwhile
		if err := c.unpackRootfs(ctx, image, name); err != nil {
			lock.release()
			return "", err
		}
	}
	if err := lock.convert(unix.LOCK_SH); err != nil {
		lock.release()
		return "", err
	}
	return dir, nil
}

// unpackRootfs makes or replaces a root file system, which is locked.
func (c *Cache) unpackRootfs(ctx context.Context, image v1.Image, name string) (err error) {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	// Programs and libraries become two to three times as large.
	if err := requireSpace(c.dir, 3*sizeOf(manifest)); err != nil {
		return c.advise(err)
	}
	temporary := c.path("rootfs", name+".new")
	if err := errors.Join(os.RemoveAll(temporary), os.RemoveAll(c.path("rootfs", name))); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if err := unpackImage(ctx, image, temporary, defaultLimits); err != nil {
		return c.advise(err)
	}
	if err := writeList(temporary, c.path("rootfs", name+".list")); err != nil {
		return err
	}
	return os.Rename(temporary, c.path("rootfs", name))
}

// removeRootfs removes a root file system that nobody uses.
func (c *Cache) removeRootfs(name string) error {
	name, _ = strings.CutSuffix(name, ".new") // what a killed process left
	path := c.path("rootfs", name)
	lock, err := tryLock(path+".lock", unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer lock.release()
	return errors.Join(os.RemoveAll(path+".new"), os.RemoveAll(path), removeIfThere(path+".list"))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeList notes what lies in a directory, for unchanged.
func writeList(dir, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, stamp(info), strconv.Quote(relative))
		return err
	})
	return errors.Join(err, w.Flush(), file.Close())
}

// stamp is by what a file is known to be unchanged.
func stamp(info fs.FileInfo) string {
	return fmt.Sprint(uint32(info.Mode()), info.Size(), info.ModTime().UnixNano())
}

// unchanged compares a root file system with the list of what was unpacked. What was added to it, as runtimes do
// with places to mount on, does not matter.
func (c *Cache) unchanged(name string) error {
	dir := c.path("rootfs", name)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	list, err := os.Open(dir + ".list")
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }() // it was only read
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		at := strings.IndexByte(lines.Text(), '"')
		if at < 1 {
			return ErrDamaged
		}
		file, err := strconv.Unquote(lines.Text()[at:])
		if err != nil {
			return err
		}
		info, err := os.Lstat(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if stamp(info) != lines.Text()[:at-1] {
			return fmt.Errorf("%w: %s was changed", ErrDamaged, file)
		}
	}
	return lines.Err()
}

// unpackImage unpacks all layers of an image to a new directory.
func unpackImage(ctx context.Context, image v1.Image, dir string, limit limits) (err error) {
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return fmt.Errorf("%w: it has %d layers, and its configuration says %d", ErrDamaged, len(layers), len(config.RootFS.DiffIDs))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u := &unpacker{root: root, limits: limit, space: &room{dir: dir, reserve: limit.reserve}, directories: map[string]*tar.Header{}}
	for i, layer := range layers {
		if err := u.layer(ctx, layer, config.RootFS.DiffIDs[i]); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return u.finish()
}

// layer unpacks a layer whose uncompressed content has the digest want.
func (u *unpacker) layer(ctx context.Context, layer v1.Layer, want v1.Hash) (err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = content.Close() }() // it was only read
	hash := sha256.New()
	r := io.TeeReader(cancelled{ctx, content}, hash)
	if err := u.archive(tar.NewReader(r)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // what tar pads with
		return readError(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.Hex {
		return fmt.Errorf("%w: its content has the digest %s, and %s is said", ErrDamaged, got, want.Hex)
	}
	return nil
}

// readError is the error of reading a layer: unless the reader was told to stop or gave up, the layer is at fault.
func readError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
