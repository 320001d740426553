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

	"github.com/touchstone-bench/touchstone/internal/filelock"
)

// Rootfs returns a directory with the merged file system of an image. It unpacks each image once. Later calls check that no file is
// missing or changed. The directory is locked until the process ends, so that it is not removed. It is read-only for the caller.
//
// The error wraps ErrDamaged if a layer does not match its digest. Rootfs refuses layers with paths that lead out of the directory,
// with devices, or of unlimited size.
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
	var lock filelock.Lock
	for {
		shareLock, err := filelock.Wait(ctx, dir+".lock", filelock.File, filelock.Shared, nil)
		if err != nil {
			return "", err
		}
		if c.unchanged(name) == nil {
			return dir, nil
		}
		shareLock.Release()
		// Do not wait for the exclusive lock: a process that has unpacked the image meanwhile keeps its shared lock until it ends.
		if lock, err = filelock.Try(dir+".lock", filelock.File, filelock.Exclusive); err == nil {
			break
		}
		if !errors.Is(err, filelock.ErrLocked) {
			return "", err
		}
		if err := filelock.Pause(ctx); err != nil {
			return "", err
		}
	}
	if c.unchanged(name) != nil { // no other process has unpacked it meanwhile
		if err := c.unpackRootfs(ctx, image, name); err != nil {
			lock.Release()
			return "", err
		}
	}
	if err := lock.Convert(filelock.Shared); err != nil {
		lock.Release()
		return "", err
	}
	return dir, nil
}

// unpackRootfs creates or replaces a root file system. The caller holds the lock.
func (c *Cache) unpackRootfs(ctx context.Context, image v1.Image, name string) (err error) {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	// Uncompressed programs and libraries are two to three times as large.
	if err := requireSpace(c.dir, 3*sizeOf(manifest)); err != nil {
		return c.addAdvice(err)
	}
	temporary := c.path("rootfs", name+".new")
	if err := errors.Join(os.RemoveAll(temporary), os.RemoveAll(c.path("rootfs", name))); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if err := unpackImage(ctx, image, temporary, defaultLimits); err != nil {
		return c.addAdvice(err)
	}
	if err := writeList(temporary, c.path("rootfs", name+".list")); err != nil {
		return err
	}
	return os.Rename(temporary, c.path("rootfs", name))
}

// removeRootfs removes a root file system unless a process uses it.
func (c *Cache) removeRootfs(name string) error {
	name, _ = strings.CutSuffix(name, ".new") // a leftover of a killed process
	path := c.path("rootfs", name)
	lock, err := filelock.Try(path+".lock", filelock.File, filelock.Exclusive)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer lock.Release()
	return errors.Join(os.RemoveAll(path+".new"), os.RemoveAll(path), os.RemoveAll(path+".list"))
}

// writeList writes the list of files in a directory for unchanged.
func writeList(dir, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			_, err = fmt.Fprintln(w, stamp(info), strconv.Quote(name))
		}
		return err
	})
	return errors.Join(err, w.Flush(), file.Close())
}

// stamp returns the properties of a file that unchanged compares.
func stamp(info fs.FileInfo) string {
	return fmt.Sprint(uint32(info.Mode()), info.Size(), info.ModTime().UnixNano())
}

// unchanged compares a root file system with the list of unpacked files. It ignores added files, because runtimes create mount
// points.
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
		index := strings.IndexByte(lines.Text(), '"')
		if index < 1 {
			return ErrDamaged
		}
		file, err := strconv.Unquote(lines.Text()[index:])
		if err != nil {
			return err
		}
		info, err := os.Lstat(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if stamp(info) != lines.Text()[:index-1] {
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
		return fmt.Errorf("%w: it has %d layers, but its configuration lists %d", ErrDamaged, len(layers), len(config.RootFS.DiffIDs))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.Chmod(".", 0o755); err != nil { // whatever the umask
		return err
	}
	u := &unpacker{root: root, limits: limit, space: &spaceGuard{dir: dir, reserve: limit.reserve}}
	for i, layer := range layers {
		if err := u.layer(ctx, layer, config.RootFS.DiffIDs[i]); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx) // the layer is not damaged
			}
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return u.finish(ctx)
}

// layer unpacks a layer whose uncompressed content has the digest want.
func (u *unpacker) layer(ctx context.Context, layer v1.Layer, want v1.Hash) (err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = content.Close() }() // it was only read
	hash := sha256.New()
	r := io.TeeReader(contextReader{ctx, content}, hash)
	if err := u.archive(ctx, tar.NewReader(r)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // the padding of tar
		return readError(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.Hex {
		return fmt.Errorf("%w: its content has the digest %s instead of %s", ErrDamaged, got, want.Hex)
	}
	return nil
}

// readError wraps an error of reading a layer. The layer is damaged unless the context ended or a limit was exceeded.
func readError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
