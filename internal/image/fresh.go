package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// FreshPath is the path of the random file in a fresh image.
const FreshPath = "/fresh"

// Fresh publishes an image that no engine has in its cache: the probe image and another layer with one file of size bytes. It returns
// the reference for Forget.
//
// The content is random and does not compress, so an engine transfers and unpacks size bytes. The seed differs for each image and does not
// come from the run, because an engine may still have the layers of an earlier run.
func (r *Registry) Fresh(ctx context.Context, size int64) (string, error) {
	image, err := freshImage(size)
	if err != nil {
		return "", fmt.Errorf("create a fresh image of %d bytes: %w", size, err)
	}
	r.mu.Lock()
	r.fresh++
	as := fmt.Sprintf("fresh:%d", r.fresh)
	r.mu.Unlock()
	return r.Publish(ctx, as, image)
}

func freshImage(size int64) (v1.Image, error) {
	base, err := Build(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // Read never fails
	packed, err := packBytes(rand.NewChaCha8(seed), size)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: Epoch()}, CreatedBy: "touchstone"},
	})
}

// packBytes packs a file with size bytes as a layer: tar inside gzip. It does not compress, because random bytes do not become
// smaller.
func packBytes(content io.Reader, size int64) ([]byte, error) {
	const overhead = 4 << 10 // for the padding of tar and the headers of gzip's blocks of 64 KiB
	layer := bytes.NewBuffer(make([]byte, 0, size+size/(8<<10)+overhead))
	zip, err := gzip.NewWriterLevel(layer, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zip)
	err = w.WriteHeader(&tar.Header{
		Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: FreshPath[1:], Mode: 0o644, Size: size, ModTime: Epoch(),
	})
	if err == nil {
		_, err = io.CopyN(w, content, size)
	}
	if err := errors.Join(err, w.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}
