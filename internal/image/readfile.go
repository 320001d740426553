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

// ReadFile returns a regular file of an image from the uppermost layer that contains it. name is the path without a leading slash. A file
// with more than limit bytes is an error.
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
			return nil, fmt.Errorf("%s of the image has %d bytes, more than %d", name, header.Size, limit)
		}
		return io.ReadAll(r)
	}
}
