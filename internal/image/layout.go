package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// maxJSON is the maximum size of an index, a manifest or a configuration, in bytes. Registries have the same limit.
const maxJSON = 4 << 20

// untrustedLayout reads an OCI layout of a user. The library's reader would follow symbolic links, block on pipes, and read
// manifests of any size into memory.
type untrustedLayout struct{ root *os.Root }

// open opens a regular file of the layout.
func (l untrustedLayout) open(name string) (*os.File, os.FileInfo, error) {
	info, err := l.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(name)
	}
	// Without O_NONBLOCK the call would block if a pipe replaced the file meanwhile. Another Put may replace a blob of the cache by an equal file.
	file, err := l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func overlong(name string) error {
	return fmt.Errorf("%s is larger than %d MiB", name, maxJSON/mebi)
}

func notRegular(name string) error { return fmt.Errorf("%s is not a regular file", name) }

// text reads a small file.
func (l untrustedLayout) text(name string) ([]byte, error) {
	file, _, err := l.open(name)
	if err != nil {
		return nil, err
	}
	content, err := readSmall(name, file)
	return content, errors.Join(err, file.Close())
}

// readSmall reads at most maxJSON bytes, and fails if the content is longer.
func readSmall(name string, r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err == nil && len(content) > maxJSON {
		err = overlong(name)
	}
	return content, err
}

// blob reads a small blob and compares it with its digest.
func (l untrustedLayout) blob(h v1.Hash) ([]byte, error) {
	content, err := l.text(blobName(h))
	if err == nil && digestOf(content) != h {
		err = fmt.Errorf("%w: %s has another digest", ErrDamaged, blobName(h))
	}
	return content, err
}

// image returns the layout's image for linux and an architecture, and its name. The image is valid until the root is closed.
func (l untrustedLayout) image(arch string) (v1.Image, string, error) {
	index, err := l.text("index.json")
	if err != nil {
		return nil, "", fmt.Errorf("not an OCI layout: %w", err)
	}
	var found []candidate
	if err := l.images(index, 0, &found); err != nil {
		return nil, "", err
	}
	return choose(found, arch)
}

// candidate is an image of a layout.
type candidate struct {
	image    v1.Image
	name     string
	platform *v1.Platform
}

// maxDepth and maxImages bound nested indexes.
const (
	maxDepth  = 4
	maxImages = 100
)

// images collects all images of an index.
func (l untrustedLayout) images(index []byte, depth int, found *[]candidate) error {
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	if depth > maxDepth || len(*found)+len(manifest.Manifests) > maxImages {
		return fmt.Errorf("the index has more than %d images, or more than %d levels", maxImages, maxDepth+1)
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := l.blob(d.Digest)
			if err != nil {
				return fmt.Errorf("read the index %s: %w", d.Digest, err)
			}
			if err := l.images(inner, depth+1, found); err != nil {
				return err
			}
		case d.MediaType.IsImage():
			image, err := l.imageOf(d)
			if err != nil {
				return fmt.Errorf("read the manifest %s: %w", d.Digest, err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				return fmt.Errorf("read the configuration: %w", err)
			}
			*found = append(*found, candidate{image, d.Annotations[refName], config.Platform()})
		}
	}
	return nil
}

// choose returns the candidate for linux and an architecture. A single candidate may have any platform, because the caller may handle it.
func choose(found []candidate, arch string) (v1.Image, string, error) {
	if len(found) == 1 {
		return found[0].image, found[0].name, nil
	}
	var platforms []string
	for _, f := range found {
		if f.platform == nil {
			continue // an attestation of a build tool is an image without a platform
		}
		if platforms = append(platforms, f.platform.String()); f.platform.OS == "linux" && f.platform.Architecture == arch {
			return f.image, f.name, nil
		}
	}
	if len(found) == 0 {
		return nil, "", errors.New("it contains no image")
	}
	return nil, "", fmt.Errorf("it contains no image for linux/%s, only for %s", arch, strings.Join(platforms, ", "))
}

func (l untrustedLayout) imageOf(d v1.Descriptor) (v1.Image, error) {
	raw, err := l.blob(d.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&layoutImage{l, d.MediaType, raw, manifest})
}

// layoutImage is an image of a layout.
type layoutImage struct {
	layout    untrustedLayout
	mediaType types.MediaType
	raw       []byte
	manifest  *v1.Manifest
}

func (i *layoutImage) MediaType() (types.MediaType, error) { return i.mediaType, nil }

func (i *layoutImage) RawManifest() ([]byte, error) { return i.raw, nil }

func (i *layoutImage) RawConfigFile() ([]byte, error) { return i.layout.blob(i.manifest.Config.Digest) }

func (i *layoutImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	index := slices.IndexFunc(i.manifest.Layers, func(d v1.Descriptor) bool { return d.Digest == h })
	if index < 0 {
		return nil, fmt.Errorf("%w: its manifest has no layer %s", ErrDamaged, h)
	}
	return &layoutLayer{i.layout, i.manifest.Layers[index]}, nil
}

// layoutLayer is a layer of a layout.
type layoutLayer struct {
	layout     untrustedLayout
	descriptor v1.Descriptor
}

func (l *layoutLayer) Digest() (v1.Hash, error) { return l.descriptor.Digest, nil }

func (l *layoutLayer) Size() (int64, error) { return l.descriptor.Size, nil }

func (l *layoutLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }

// Descriptor returns the descriptor of the manifest, with annotations.
func (l *layoutLayer) Descriptor() (*v1.Descriptor, error) { return &l.descriptor, nil }

func (l *layoutLayer) Compressed() (io.ReadCloser, error) {
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
