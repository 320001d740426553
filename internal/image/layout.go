package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// maxJSON is the most that an index, a manifest or a configuration may have, in bytes. It is what registries take.
const maxJSON = 4 << 20

// givenLayout is an OCI layout of a user's. The library would follow its links, wait for its pipes, and
// read manifests of any size into memory.
type givenLayout struct{ root *os.Root }

// open opens a regular file of the layout.
func (l givenLayout) open(name string) (*os.File, os.FileInfo, error) {
	info, err := l.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(name)
	}
	// A pipe that takes the file's place meanwhile would otherwise be waited for.
	file, err := l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s has been replaced", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, opened, nil
}

func overlong(name string) error {
	return fmt.Errorf("%s has more than the %d MiB that it may have", name, maxJSON/mebi)
}

func notRegular(name string) error { return fmt.Errorf("%s is no regular file", name) }

// text reads a small file.
func (l givenLayout) text(name string) ([]byte, error) {
	file, _, err := l.open(name)
	if err != nil {
		return nil, err
	}
	content, err := readSmall(name, file)
	return content, errors.Join(err, file.Close())
}

// readSmall reads what may have maxJSON bytes.
func readSmall(name string, r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err == nil && len(content) > maxJSON {
		err = overlong(name)
	}
	return content, err
}

// blob reads a small blob and compares it with its digest.
func (l givenLayout) blob(h v1.Hash) ([]byte, error) {
	content, err := l.text(blobName(h))
	if err == nil && digestOf(content) != h {
		err = fmt.Errorf("%w: %s is another", ErrDamaged, blobName(h))
	}
	return content, err
}

// image gives the image of the layout that is for the host, with its name. It may be used until the root is closed.
func (l givenLayout) image() (v1.Image, string, error) {
	index, err := l.text("index.json")
	if err != nil {
		return nil, "", fmt.Errorf("it is no OCI layout: %w", err)
	}
	var found []candidate
	if err := l.images(index, 0, &found); err != nil {
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
func (l givenLayout) images(index []byte, depth int, found *[]candidate) error {
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return fmt.Errorf("read its index: %w", err)
	}
	if depth > maxDepth || len(*found)+len(manifest.Manifests) > maxImages {
		return fmt.Errorf("its index has more than %d images, or indices in indices in indices", maxImages)
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := l.blob(d.Digest)
			if err != nil {
				return fmt.Errorf("read its index %s: %w", d.Digest, err)
			}
			if err := l.images(inner, depth+1, found); err != nil {
				return err
			}
		case d.MediaType.IsImage():
			image, err := l.imageOf(d)
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

func (l givenLayout) imageOf(d v1.Descriptor) (v1.Image, error) {
	raw, err := l.blob(d.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&givenImage{l, d.MediaType, raw, manifest})
}

// givenImage is an image of a layout.
type givenImage struct {
	layout    givenLayout
	mediaType types.MediaType
	raw       []byte
	manifest  *v1.Manifest
}

func (i *givenImage) MediaType() (types.MediaType, error) { return i.mediaType, nil }

func (i *givenImage) RawManifest() ([]byte, error) { return i.raw, nil }

func (i *givenImage) RawConfigFile() ([]byte, error) { return i.layout.blob(i.manifest.Config.Digest) }

func (i *givenImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	at := slices.IndexFunc(i.manifest.Layers, func(d v1.Descriptor) bool { return d.Digest == h })
	if at < 0 {
		return nil, fmt.Errorf("%w: its manifest has no layer %s", ErrDamaged, h)
	}
	return &givenLayer{i.layout, i.manifest.Layers[at]}, nil
}

// givenLayer is a layer of a layout.
type givenLayer struct {
	layout     givenLayout
	descriptor v1.Descriptor
}

func (l *givenLayer) Digest() (v1.Hash, error) { return l.descriptor.Digest, nil }

func (l *givenLayer) Size() (int64, error) { return l.descriptor.Size, nil }

func (l *givenLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }

// Descriptor is what the manifest says, with annotations.
func (l *givenLayer) Descriptor() (*v1.Descriptor, error) { return &l.descriptor, nil }

func (l *givenLayer) Compressed() (io.ReadCloser, error) {
	name := blobName(l.descriptor.Digest)
	file, info, err := l.layout.open(name)
	if err != nil {
		return nil, err
	}
	if info.Size() != l.descriptor.Size {
		return nil, errors.Join(fmt.Errorf("%w: %s has %d bytes of %d", ErrDamaged, name, info.Size(), l.descriptor.Size), file.Close())
	}
	return file, nil
}
