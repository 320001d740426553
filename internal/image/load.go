package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Load gives an image of the user's: a directory or an archive, as Import reads them, or the name of one in the
// cache. What is an archive is imported under a name made of its digest.
func (c *Cache) Load(ctx context.Context, pathOrName string) (v1.Image, error) {
	info, err := os.Stat(pathOrName)
	switch {
	case err == nil && info.IsDir():
		image, _, err := fromLayout(pathOrName)
		if err != nil {
			return nil, fmt.Errorf("load image %s: %w", pathOrName, err)
		}
		return image, nil
	case err == nil:
		_, image, err := c.Import(ctx, pathOrName, "")
		return image, err
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid):
		return nil, fmt.Errorf("load image: %w", err)
	}
	image, err := c.Get(pathOrName)
	if errors.Is(err, ErrNoImage) {
		return nil, fmt.Errorf("load image %s: there is no such file or directory, and no image of that name in the cache; touchstone image list shows those", pathOrName)
	}
	return image, err
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

func (c *Cache) importFrom(ctx context.Context, file, name string) (string, v1.Image, error) {
	temporary, err := os.MkdirTemp(c.path("tmp"), "import-")
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // Prune removes what is left
	image, named, err := read(ctx, file, temporary)
	if err != nil {
		return "", nil, err
	}
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
// has to be unpacked, and must stay as long as the image is used.
func read(ctx context.Context, file, temporary string) (v1.Image, string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, "", err
	}
	if info.IsDir() {
		return fromLayout(file)
	}
	packed := archiveFile{ctx, file}
	isLayout, isDocker, err := packed.kind()
	switch {
	case err != nil:
		return nil, "", err
	case isLayout: // Docker writes archives that are both; this one keeps digests
		if err := packed.expand(temporary); err != nil {
			return nil, "", err
		}
		return fromLayout(temporary)
	case isDocker:
		image, err := tarball.Image(packed.open, nil)
		if err != nil {
			err = fmt.Errorf("read what docker save has written: %w", err)
		}
		return image, "", err
	default:
		return nil, "", errors.New("it is no archive of an image: there is neither oci-layout nor manifest.json in it")
	}
}

// archiveFile is a tar archive, with gzip around it or not.
type archiveFile struct {
	ctx  context.Context
	file string
}

func (a archiveFile) open() (io.ReadCloser, error) {
	f, err := os.Open(a.file)
	if err != nil {
		return nil, err
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
	return opened, nil
}

// kind tells of what formats the archive is.
func (a archiveFile) kind() (isLayout, isDocker bool, err error) {
	r, err := a.open()
	if err != nil {
		return false, false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	entries := tar.NewReader(r)
	for first := true; ; first = false {
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return isLayout, isDocker, nil
		case errors.Is(err, tar.ErrHeader), first && errors.Is(err, io.ErrUnexpectedEOF):
			return false, false, errors.New("it is no archive of an image: it is no tar archive, nor one compressed by gzip")
		case err != nil:
			return false, false, readError(err)
		}
		switch path.Clean(header.Name) {
		case "oci-layout":
			isLayout = true
		case "manifest.json":
			isDocker = true
		}
	}
}

// expand unpacks the archive to a directory.
func (a archiveFile) expand(dir string) (err error) {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	u := &unpacker{root: root, limits: defaultLimits, directories: map[string]*tar.Header{}}
	return errors.Join(u.archive(tar.NewReader(r)), root.Close())
}

// fromLayout gives the image of an OCI layout that is for the host.
func fromLayout(dir string) (v1.Image, string, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, "", fmt.Errorf("it is no OCI layout: %w", err)
	}
	var found []candidate
	if err := images(index, 0, &found); err != nil {
		return nil, "", err
	}
	return choose(found)
}

// candidate is one of the images of a layout.
type candidate struct {
	image    v1.Image
	name     string
	platform *v1.Platform
}

// maxDepth and maxImages bound what is looked at of an index of indices.
const (
	maxDepth  = 4
	maxImages = 100
)

// images collects all images of an index.
func images(index v1.ImageIndex, depth int, found *[]candidate) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read its index: %w", err)
	}
	if depth > maxDepth || len(*found)+len(manifest.Manifests) > maxImages {
		return fmt.Errorf("its index has more than %d images, or indices in indices in indices", maxImages)
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return fmt.Errorf("read its index %s: %w", d.Digest, err)
			}
			if err := images(inner, depth+1, found); err != nil {
				return err
			}
		case d.MediaType.IsImage():
			image, err := index.Image(d.Digest)
			if err != nil {
				return fmt.Errorf("read its manifest %s: %w", d.Digest, err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				return fmt.Errorf("read its configuration: %w", err)
			}
			*found = append(*found, candidate{image, d.Annotations[refName], config.Platform()})
		}
	}
	return nil
}

// choose gives the candidate for the host; a single one may be for any platform, and then is for who knows what to do with it.
func choose(found []candidate) (v1.Image, string, error) {
	if len(found) == 1 {
		return found[0].image, found[0].name, nil
	}
	var there []string
	for _, f := range found {
		if f.platform == nil {
			continue
		}
		// What build tools attest of an image is an image itself, for no platform.
		if there = append(there, f.platform.String()); f.platform.OS == "linux" && f.platform.Architecture == runtime.GOARCH {
			return f.image, f.name, nil
		}
	}
	if len(found) == 0 {
		return nil, "", errors.New("there is no image in it")
	}
	return nil, "", fmt.Errorf("there is none for linux/%s in it, only for %s", runtime.GOARCH, strings.Join(there, ", "))
}
