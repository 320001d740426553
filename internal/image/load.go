package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

// Load returns a user's image: from a directory or an archive, with the formats of Import, or from the cache by name. An image from a
// file is in a temporary cache until the caller calls release, at most once.
func (c *Cache) Load(ctx context.Context, pathOrName string) (image v1.Image, release func() error, err error) {
	_, err = os.Stat(pathOrName)
	switch {
	case err == nil:
		return c.loadFile(ctx, pathOrName)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid):
		return nil, nil, fmt.Errorf("load image: %w", err)
	}
	image, err = c.Get(pathOrName)
	if errors.Is(err, ErrNoImage) {
		err = fmt.Errorf("load image %s: no such file, directory or image in the cache; touchstone image list shows the images", pathOrName)
	}
	return image, func() error { return nil }, err
}

// Open returns an image for reading in place: from a directory or an archive, with the formats of Import, or from the cache by name.
// It copies nothing, except the compressed layers of a layout in an archive. Of several images it takes the image for linux and the
// architecture, in Go's naming. An empty architecture is any single one, or the host's of several. The image is valid until the
// caller calls release, at most once. Its layers are not verified.
func (c *Cache) Open(ctx context.Context, pathOrName, arch string) (image v1.Image, release func() error, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open image %s: %w", pathOrName, err)
		}
	}()
	_, err = os.Stat(pathOrName)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
		if image, err = c.Get(pathOrName); errors.Is(err, ErrNoImage) {
			err = errors.New("no such file, directory or image in the cache; touchstone image list shows the images")
		}
		if err == nil {
			err = isFor(image, arch)
		}
		return image, func() error { return nil }, err
	case err != nil:
		return nil, nil, err
	}
	temporary, release, err := c.temporary(ctx, "load")
	if err != nil {
		return nil, nil, err
	}
	if image, _, err = read(ctx, pathOrName, temporary, arch); err == nil {
		err = isFor(image, arch)
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return image, release, nil
}

// isFor refuses an image for another architecture. An empty architecture accepts all.
func isFor(image v1.Image, arch string) error {
	if arch == "" {
		return nil
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if config.Architecture != arch {
		return fmt.Errorf("it contains no image for linux/%s, only for %s", arch, config.Platform())
	}
	return nil
}

func (c *Cache) loadFile(ctx context.Context, file string) (v1.Image, func() error, error) {
	dir, release, err := c.temporary(ctx, "load")
	if err != nil {
		return nil, nil, fmt.Errorf("load image %s: %w", file, err)
	}
	temporary, err := OpenCache(dir)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	_, image, err := temporary.Import(ctx, file, Named(""))
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return image, release, nil
}

// Import stores an image in the cache. The source is an OCI layout, as a directory or a tar archive, or an archive of docker
// save. Archives may be compressed with gzip. From several images Import takes the one for the host's platform. The parameter
// naming returns the name in the cache, or refuses the image.
func (c *Cache) Import(ctx context.Context, file string, naming Naming) (_ string, _ v1.Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("load image %s: %w", file, err)
		}
	}()
	temporary, release, err := c.temporary(ctx, "import")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	image, claimed, err := read(ctx, file, temporary, "")
	if err != nil {
		return "", nil, err
	}
	name, err := naming(image, claimed)
	if err != nil {
		return "", nil, err
	}
	image, err = c.Put(ctx, name, image)
	return name, image, err
}

// Naming returns the name of an image in the cache. The archive claims a name, which proves nothing.
type Naming func(image v1.Image, claimed string) (name string, err error)

// Named names a user's image. Without a name it derives one from the digest. It refuses names of images that Touchstone builds.
func Named(name string) Naming {
	return func(image v1.Image, _ string) (string, error) {
		if IsOwn(name) {
			return "", fmt.Errorf("the names with %s belong to images that touchstone builds; choose another name", OwnPrefix)
		}
		if name != "" {
			return name, nil
		}
		digest, err := image.Digest()
		return "loaded-" + digest.Hex[:min(12, len(digest.Hex))], err
	}
}

// OwnPrefix begins the names of images that Touchstone builds. Only the build gives these names, and the load of an image with the digest
// of a build.
const OwnPrefix = "workload-"

// IsOwn reports whether a name belongs to an image that Touchstone builds, and not to a user's image.
func IsOwn(name string) bool { return strings.HasPrefix(name, OwnPrefix) }

// read reads an image and its name from a directory or an archive. Of several images it takes the one for an architecture, or for the
// host's if arch is empty. It unpacks an archive to the directory temporary, which must exist as long as the image is used.
func read(ctx context.Context, file, temporary, arch string) (image v1.Image, name string, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, "", err
	}
	if info.IsDir() {
		return readLayout(file, arch)
	}
	archive := archiveFile{ctx, file, defaultLimits}
	isLayout, isDocker, err := archive.kind()
	switch {
	case err != nil:
		return nil, "", err
	case isLayout: // preferred if Docker wrote both formats, because a layout keeps the digests
		if err := archive.expand(temporary); err != nil {
			return nil, "", err
		}
		return readLayout(temporary, arch)
	case isDocker:
		image, err := archive.docker()
		if err != nil {
			err = fmt.Errorf("read the archive of docker save: %w", err)
		}
		return image, "", err
	default:
		return nil, "", errors.New("not an archive of an image: it contains neither oci-layout nor manifest.json")
	}
}

// readLayout reads the image of an OCI layout for an architecture, or for the host's if arch is empty. The root is closed with the
// image.
func readLayout(dir, arch string) (v1.Image, string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	return untrustedLayout{root}.image(cmp.Or(arch, runtime.GOARCH))
}

// archiveFile is a tar archive, optionally compressed with gzip.
type archiveFile struct {
	ctx    context.Context
	file   string
	limits limits
}

// open returns the uncompressed tar stream.
func (a archiveFile) open() (io.ReadCloser, error) {
	f, err := os.OpenFile(a.file, os.O_RDONLY|unix.O_NONBLOCK, 0) // O_NONBLOCK, because the path may be a pipe
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = notRegular(a.file)
		}
		return nil, errors.Join(err, f.Close())
	}
	r := bufio.NewReaderSize(contextReader{a.ctx, f}, 1<<20)
	stream := struct {
		io.Reader
		io.Closer
	}{r, f}
	if magic, err := r.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if stream.Reader, err = gzip.NewReader(r); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrDamaged, err), f.Close())
		}
	}
	stream.Reader = &bounded{stream.Reader, a.limits.bytes}
	return stream, nil
}

// bounded is a reader that fails after a number of bytes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// kind returns the formats of the archive. It stops at the first sign of an OCI layout, because that is preferred.
func (a archiveFile) kind() (isLayout, isDocker bool, err error) {
	first := true
	err = a.each(func(name string, _ *tar.Header, _ io.Reader) error {
		first = false
		switch name {
		case "oci-layout":
			isLayout = true
			return io.EOF
		case "manifest.json":
			isDocker = true
		}
		return nil
	})
	if errors.Is(err, tar.ErrHeader) || first && errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("not an archive of an image: it is not a tar archive, with or without gzip")
	}
	return isLayout, isDocker, err
}

// each calls do for each entry until it returns an error. If do returns io.EOF, each stops without an error.
func (a archiveFile) each(do func(name string, header *tar.Header, content io.Reader) error) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	entries := tar.NewReader(r)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return readError(err)
		}
		err = do(path.Clean(header.Name), header, entries)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// expand unpacks the files of an OCI layout to a directory. It refuses links, because a layout has none.
func (a archiveFile) expand(dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	space := &spaceGuard{dir: dir, reserve: a.limits.reserve}
	entries := a.limits.entries
	return a.each(func(name string, header *tar.Header, content io.Reader) error {
		isBlob, _ := path.Match("blobs/*/*", name) // the pattern is valid
		switch {
		case !isBlob && name != "oci-layout" && name != "index.json", isBlob && header.Typeflag == tar.TypeDir:
			return nil
		case header.Typeflag != tar.TypeReg:
			return notRegular(name)
		case !isBlob && header.Size > maxJSON:
			return overlong(name)
		}
		if entries--; entries < 0 {
			return errTooMany
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		return fill(root, name, content, space)
	})
}

// docker returns the image of an archive of docker save. It first checks the manifest and the configuration, because the library reads
// files of any size and follows links to them.
func (a archiveFile) docker() (v1.Image, error) {
	text, err := a.text("manifest.json")
	if err != nil {
		return nil, err
	}
	var images []dockerImage
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("it contains %d images; save a single image", len(images))
	}
	if _, err := a.text(path.Clean(images[0].Config)); err != nil {
		return nil, err
	}
	return tarball.Image(a.open, nil)
}

// text reads a small file of the archive.
func (a archiveFile) text(file string) (text []byte, err error) {
	found := false
	err = a.each(func(name string, header *tar.Header, content io.Reader) error {
		if name != file {
			return nil
		}
		if header.Typeflag != tar.TypeReg {
			return notRegular(name)
		}
		found = true
		if text, err = readSmall(name, content); err != nil {
			return err
		}
		return io.EOF
	})
	if err == nil && !found {
		err = fmt.Errorf("%s in the archive: %w", file, fs.ErrNotExist)
	}
	return text, err
}
