// Package image holds the probe and the image that it makes: a file system from
// scratch with the probe, the directories that runtimes mount on, and nothing
// else; and it keeps, unpacks, reads and serves images of every kind. The workload image is
// made by package debian below.
//
// The probe is a C program (folder probe at the top) that is embedded per architecture, so that one
// binary is all there is to install. The image has one layer. Build packs it for engines that pull,
// WriteRootfs unpacks that very layer for those that want a directory: what they run cannot
// differ. It is the same, to the byte and the digest, each time it is made from the same probe.
//
// Registry serves images to engines, and fresh ones with a layer more, to measure pulls with.
// Cache keeps images on disk and unpacks each once, for engines that want a directory.
//
// Images of others are untrusted: the package refuses names and links that lead out of the directory, devices,
// what grows without bounds, and whatever is not what its digest says. Of the probe's own layer
// it takes nothing but files and directories.
package image

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ProbePath is where the probe lies in the image. It is the image's entry point.
const ProbePath = "/probe"

// WriteRootfs writes the root file system of the image for the host's architecture to
// dir, which is made if it is not there (its parent is not). Modes are exact, whatever the
// umask; the owner is root if the caller is. It may be called again, also while
// containers run from dir: files are replaced as a whole, and what else lies in dir stays.
func WriteRootfs(dir string) error {
	layer, err := packed(runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("write root file system %q: %w", dir, err)
	}
	if err := unpack(bytes.NewReader(layer), dir); err != nil {
		return fmt.Errorf("write root file system %q: %w", dir, err)
	}
	return nil
}

// Build makes the image for an architecture, named as Go does. The error wraps
// ErrNoProbe if there is no probe for it.
func Build(arch string) (v1.Image, error) {
	image, err := build(arch)
	if err != nil {
		return nil, fmt.Errorf("build probe image for %s: %w", arch, err)
	}
	return image, nil
}

func build(arch string) (v1.Image, error) {
	content, err := packed(arch)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return Assemble(arch, "touchstone", nil, layer)
}

// Assemble makes an image of layers for an architecture, that has the probe for its entry point. Its digest depends
// on nothing else: it has no time of its own.
func Assemble(arch, createdBy string, labels map[string]string, layers ...v1.Layer) (v1.Image, error) {
	made := v1.Time{Time: Epoch()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range layers {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: made, CreatedBy: createdBy}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = "linux", arch, variant(arch)
	config.Created = made
	config.Config = v1.Config{
		// Without arguments it waits: the probe's image is also the sandbox ("pause") image of CRI engines.
		Entrypoint: []string{ProbePath}, Cmd: []string{"pause"}, WorkingDir: "/", Env: []string{"PATH=" + searchPath}, Labels: labels,
	}
	return mutate.ConfigFile(image, config)
}

// searchPath is the PATH that images usually have. The probe has no use for it, but youki starts nothing without.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// variant is the architecture's variant as image indexes name it.
func variant(arch string) string {
	if arch == "arm64" {
		return "v8"
	}
	return ""
}

// Epoch is the time of all that is in images of ours: a real one would change their digests.
func Epoch() time.Time { return time.Unix(0, 0).UTC() }

func packed(arch string) ([]byte, error) {
	probe, err := Probe(arch)
	if err != nil {
		return nil, err
	}
	return pack(tree(probe))
}
