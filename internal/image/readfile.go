package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ReadFile gives a regular file of an image, by its path without a slash at the beginning: the one of the
// uppermost layer that has it. It has at most limit bytes.
func ReadFile(image v1.Image, name string, limit int64) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range slices.Backward(layers) {
		text, err := readFrom(layer, name, limit)
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return nil, fmt.Errorf("read %s of the image: %w", name, fs.ErrNotExist)
}

func readFrom(layer v1.Layer, name string, limit int64) ([]byte, error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // it was only read
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fs.ErrNotExist
		case err != nil:
			return nil, readError(err)
		case path.Clean(header.Name) != name || header.Typeflag != tar.TypeReg:
			continue
		case header.Size > limit:
			return nil, fmt.Errorf("%s of the image has %d bytes, and may have %d", name, header.Size, limit)
		}
		return io.ReadAll(r)
	}
}
