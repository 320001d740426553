// Package image builds the probe image, and stores, unpacks, reads and serves images of every kind. The probe image has only the
// probe and the mount points for runtimes. Package debian below it builds the workload image.
//
// The probe is a C program (directory probe at the top). The binary embeds it for several architectures, so that a user installs a
// single file. The probe image has one layer. Build packs its files for engines that pull, and WriteRootfs writes the same files for
// engines that need a directory. The build is reproducible: the same probe gives the same bytes and digest.
//
// Registry serves images to engines. It also creates fresh images with another layer, to measure pulls. Cache stores images on
// disk and unpacks each once, for engines that need a directory.
//
// Images from elsewhere are untrusted. The package refuses names and links that lead out of the directory, devices, images of unlimited
// size, and content that does not match its digest.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ProbePath is the path of the probe in the image. It is the image's entry point.
const ProbePath = "/probe"

// WriteRootfs writes the root file system of the probe image for the host's architecture to dir. It creates dir, but not its parent. Modes do
// not depend on the umask. The owner is root if the caller is root.
func WriteRootfs(ctx context.Context, dir string) error {
	image, err := Build(runtime.GOARCH)
	if err == nil {
		err = unpackImage(ctx, image, dir, limits{bytes: 1 << 30, entries: 100})
	}
	if err != nil {
		return fmt.Errorf("write root file system %q: %w", dir, err)
	}
	return nil
}

// Build builds the probe image for an architecture in Go's naming. The error wraps ErrNoProbe if the binary has no probe for it.
func Build(arch string) (image v1.Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build probe image for %s: %w", arch, err)
		}
	}()
	probe, err := Probe(arch)
	if err != nil {
		return nil, err
	}
	return imageOf(arch, probe)
}

// imageOf builds an image for an architecture with a program at ProbePath.
func imageOf(arch string, program []byte) (v1.Image, error) {
	// Engines need etc/passwd and etc/group to look up the name of user 0. Benchmarks bind a directory of the host to /data.
	layer, err := Layer(Epoch(), []File{
		{Name: "data/", Mode: 0o755},
		{Name: "dev/", Mode: 0o755},
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/group", Mode: 0o644, Content: []byte("root:x:0:\n")},
		{Name: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:" + ProbePath + "\n")},
		{Name: "probe", Mode: 0o755, Content: program},
		{Name: "proc/", Mode: 0o555},
		{Name: "sys/", Mode: 0o555},
		{Name: "tmp/", Mode: 0o1777},
	})
	if err != nil {
		return nil, err
	}
	return Assemble(arch, "touchstone", nil, layer)
}

// layerOf returns a layer of a tar archive, which may be compressed.
func layerOf(content []byte, options ...tarball.LayerOption) (v1.Layer, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, append(options, tarball.WithMediaType(types.OCILayer))...)
}

// File is a file of a layer. The name of a directory ends with a slash.
type File struct {
	Name    string
	Mode    int64
	Owner   int // user and group
	Content []byte
}

// Layer packs files with a date as a reproducible layer. Parents precede their children.
func Layer(date time.Time, files []File, options ...tarball.LayerOption) (v1.Layer, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, f := range files {
		header := tar.Header{Format: tar.FormatUSTAR, Name: f.Name, Mode: f.Mode, Uid: f.Owner, Gid: f.Owner, Size: int64(len(f.Content)), ModTime: date}
		if err := w.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("pack %q: %w", f.Name, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("pack %q: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return layerOf(layer.Bytes(), options...)
}

// Assemble builds an image from layers with the probe as its entry point. The digest depends only on the arguments, because all
// times are Epoch.
func Assemble(arch, createdBy string, labels map[string]string, layers ...v1.Layer) (v1.Image, error) {
	return Compose(arch, createdBy, Epoch(), v1.Config{
		// Without arguments the probe waits, because the image is also the sandbox ("pause") image of CRI engines.
		Entrypoint: []string{ProbePath}, Cmd: []string{"pause"}, WorkingDir: "/", Env: []string{"PATH=" + SearchPath}, Labels: labels,
	}, layers...)
}

// Compose builds an image for an architecture, in Go's naming, from layers. The digest depends only on the arguments.
func Compose(arch, createdBy string, date time.Time, run v1.Config, layers ...v1.Layer) (v1.Image, error) {
	creation := v1.Time{Time: date}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range layers {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: creation, CreatedBy: createdBy}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = "linux", arch, variants[arch]
	config.Created, config.Config = creation, run
	return mutate.ConfigFile(image, config)
}

// SearchPath is the usual PATH of images. The probe does not need it, but youki starts no container without PATH.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// variants are the variants of architectures in image indexes.
var variants = map[string]string{"arm": "v7", "arm64": "v8"}

// Epoch returns the time of all files and fields in Touchstone's images. The current time would change their digests.
func Epoch() time.Time { return time.Unix(0, 0).UTC() }

// ReadFile returns a regular file of an image. name is the path without a leading slash. A file with more than limit bytes is an error.
func ReadFile(image v1.Image, name string, limit int64) ([]byte, error) {
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }() // it was only read
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read %s of the image: %w", name, fs.ErrNotExist)
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
