package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

// Load gives an image of the user's: of a directory or an archive, as Import reads them, or the one of a name in the
// cache. What is read from a file is kept apart until release is called, which may be done once.
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
		err = fmt.Errorf("load image %s: there is no such file or directory, and no image of that name in the cache; touchstone image list shows those", pathOrName)
	}
	return image, func() error { return nil }, err
}

func (c *Cache) loadFile(ctx context.Context, file string) (v1.Image, func() error, error) {
	dir, release, err := c.temporary("load")
	if err != nil {
		return nil, nil, fmt.Errorf("load image %s: %w", file, err)
	}
	apart, err := OpenCache(dir)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	_, image, err := apart.Import(ctx, file, "")
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return image, release, nil
}

// Import puts an image into the cache: from an OCI layout, a directory or a tar archive of one, or from an archive as docker
// save writes it; archives may be compressed by gzip. Of several images it takes the one for the host's
// platform. An empty name stands for the one that the archive gives it, if it is one of Touchstone's, else for one made of
// its digest.
func (c *Cache) Import(ctx context.Context, file, name string) (string, v1.Image, error) {
	name, image, err := c.importFrom(ctx, file, name)
	if err != nil {
		return "", nil, fmt.Errorf("load image %s: %w", file, err)
	}
	return name, image, nil
}

func (c *Cache) importFrom(ctx context.Context, file, name string) (_ string, _ v1.Image, err error) {
	temporary, release, err := c.temporary("import")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	image, named, done, err := read(ctx, file, temporary)
	if err != nil {
		return "", nil, err
	}
	defer done()
	digest, err := image.Digest()
	if err != nil {
		return "", nil, err
	}
	switch {
	case name != "":
	case IsOwn(named):
		name = named
	default:
		name = "loaded-" + digest.Hex[:12]
	}
	image, err = c.Put(ctx, name, image)
	return name, image, err
}

// OwnPrefix begins the names of the images that Touchstone makes.
const OwnPrefix = "workload-"

// IsOwn tells the names of images that Touchstone makes from those that users give.
func IsOwn(name string) bool { return strings.HasPrefix(name, OwnPrefix) }

// read reads an image from a directory or an archive; the name is the one that it has there. temporary is for what
// has to be unpacked, and must stay until done is called, after which the image is of no use.
func read(ctx context.Context, file, temporary string) (image v1.Image, name string, done func(), err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, "", nil, err
	}
	if info.IsDir() {
		return readLayout(file)
	}
	packed := archiveFile{ctx, file, defaultLimits}
	isLayout, isDocker, err := packed.kind()
	switch {
	case err != nil:
		return nil, "", nil, err
	case isLayout: // Docker writes archives that are both; this one keeps digests
		if err := packed.expand(temporary); err != nil {
			return nil, "", nil, err
		}
		return readLayout(temporary)
	case isDocker:
		image, err := packed.docker()
		if err != nil {
			err = fmt.Errorf("read what docker save has written: %w", err)
		}
		return image, "", func() {}, err
	default:
		return nil, "", nil, errors.New("it is no archive of an image: there is neither oci-layout nor manifest.json in it")
	}
}

// readLayout reads the image of an OCI layout that is for the host.
func readLayout(dir string) (image v1.Image, name string, done func(), err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", nil, err
	}
	done = func() { _ = root.Close() } // it was only read
	image, name, err = givenLayout{root}.image()
	if err != nil {
		done()
	}
	return image, name, done, err
}

// archiveFile is a tar archive, with gzip around it or not.
type archiveFile struct {
	ctx    context.Context
	file   string
	limits limits
}

// open gives what is in the archive, unzipped.
func (a archiveFile) open() (io.ReadCloser, error) {
	f, err := os.OpenFile(a.file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = notRegular(a.file)
		}
		return nil, errors.Join(err, f.Close())
	}
	r := bufio.NewReaderSize(cancelled{a.ctx, f}, 1<<20)
	opened := struct {
		io.Reader
		io.Closer
	}{r, f}
	if magic, err := r.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if opened.Reader, err = gzip.NewReader(r); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrDamaged, err), f.Close())
		}
	}
	opened.Reader = &bounded{opened.Reader, a.limits.bytes}
	return opened, nil
}

// bounded is a reader that refuses to give more than so many bytes.
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

// kind tells of what formats the archive is, or that it has the layout that is preferred.
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
		err = errors.New("it is no archive of an image: it is no tar archive, nor one compressed by gzip")
	}
	return isLayout, isDocker, err
}

// each calls do for each entry, until it gives an error. That of io.EOF only ends it.
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

// expand unpacks the files of an OCI layout to a directory. There are no links in one.
func (a archiveFile) expand(dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	space := &room{dir: dir, reserve: a.limits.reserve}
	entries := a.limits.entries
	return a.each(func(name string, header *tar.Header, content io.Reader) error {
		isBlob, _ := path.Match("blobs/*/*", name) // the pattern is sound
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

// docker gives the image of an archive of docker save. The library reads manifest and configuration whole, and
// follows links to them.
func (a archiveFile) docker() (v1.Image, error) {
	text, err := a.text("manifest.json")
	if err != nil {
		return nil, err
	}
	var there []dockerImage
	if err := json.Unmarshal(text, &there); err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	if len(there) != 1 {
		return nil, fmt.Errorf("there are %d images in it; save a single image", len(there))
	}
	if _, err := a.text(path.Clean(there[0].Config)); err != nil {
		return nil, err
	}
	return tarball.Image(a.open, nil)
}

// text reads a small file of the archive.
func (a archiveFile) text(wanted string) (text []byte, err error) {
	found := false
	err = a.each(func(name string, header *tar.Header, content io.Reader) error {
		if name != wanted {
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
		err = fmt.Errorf("%s: %w in it", wanted, fs.ErrNotExist)
	}
	return text, err
}
