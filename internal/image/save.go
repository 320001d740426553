package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// Save writes an image as a tar archive in two formats. Import, podman load, ctr images import and skopeo read the OCI layout, which keeps
// the digest. All versions of docker load read the manifest.json.
func Save(ctx context.Context, w io.Writer, name string, image v1.Image) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save image %s: %w", name, err)
		}
	}()
	files, err := filesOf(image, "touchstone/"+name+":latest", map[string]string{refName: name})
	if err != nil {
		return err
	}
	return write(ctx, w, Epoch(), files)
}

// Artifact is an image, or an index of the images of several architectures.
type Artifact interface {
	partial.Describable
	RawManifest() ([]byte, error)
}

// SaveTagged writes an artifact as a tar archive in the formats of Save, with a date. Programs that read the OCI layout get it by its name, such as
// localhost/touchstone:v1. Those that read the manifest.json get an image by this name, and each image of an index by the name with its architecture,
// such as localhost/touchstone:v1-arm64.
func SaveTagged(ctx context.Context, w io.Writer, tag name.Tag, date time.Time, artifact Artifact) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save image %s: %w", tag, err)
		}
	}()
	names := map[string]string{containerdName: wholeName(tag), refName: tag.TagStr()}
	var files []saved
	switch artifact := artifact.(type) {
	case v1.Image:
		files, err = filesOf(artifact, wholeName(tag), names)
	case v1.ImageIndex:
		files, err = filesOfIndex(artifact, wholeName(tag), names)
	}
	if err != nil {
		return err
	}
	return write(ctx, w, date, files)
}

// write writes files as a tar archive.
func write(ctx context.Context, w io.Writer, date time.Time, files []saved) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: f.size, ModTime: date}
		if err := out.WriteHeader(&header); err != nil {
			return err
		}
		r, err := f.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(out, contextReader{ctx, r})
		if err := errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out.Close()
}

// saved is a file of an archive.
type saved struct {
	name   string
	digest v1.Hash // of a blob
	size   int64
	open   func() (io.ReadCloser, error)
}

// filesOf returns the files of an image's archive. name is its name for Docker, and annotations has its names in the OCI layout.
func filesOf(image v1.Image, name string, annotations map[string]string) ([]saved, error) {
	d, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	d.Annotations = annotations
	blobs, err := blobsIn(image)
	if err != nil {
		return nil, err
	}
	docker, err := dockerImageOf(image, name)
	if err != nil {
		return nil, err
	}
	return frame(*d, blobs, docker)
}

// containerdName is the annotation of an image with its whole name. containerd, Podman and Docker with containerd's store read it.
const containerdName = "io.containerd.image.name"

// wholeName is the name of an image with its registry. Container engines have another name for the registry of Docker.
func wholeName(tag name.Tag) string {
	if rest, ok := strings.CutPrefix(tag.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + rest
	}
	return tag.Name()
}

// filesOfIndex returns the files of the archive of an index.
func filesOfIndex(index v1.ImageIndex, name string, annotations map[string]string) ([]saved, error) {
	d, err := partial.Descriptor(index)
	if err != nil {
		return nil, err
	}
	d.Annotations = annotations
	text, err := index.RawManifest()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	blobs, docker := []saved{content(blobName(d.Digest), text)}, []dockerImage{}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		parts, err := blobsIn(image)
		if err != nil {
			return nil, err
		}
		entry, err := dockerImageOf(image, name+"-"+m.Platform.Architecture)
		if err != nil {
			return nil, err
		}
		blobs, docker = append(blobs, parts...), append(docker, entry)
	}
	return frame(*d, blobs, docker...)
}

// frame adds the files of both formats to blobs.
func frame(d v1.Descriptor, blobs []saved, docker ...dockerImage) ([]saved, error) {
	index := emptyIndex()
	index.Manifests = []v1.Descriptor{d}
	indexText, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	dockerText, err := json.Marshal(docker)
	return slices.Concat([]saved{content("oci-layout", []byte(layoutMark)), content("index.json", indexText)},
		blobs, []saved{content("manifest.json", dockerText)}), err
}

// blobsIn returns the manifest, the configuration and the layers of an image, each once.
func blobsIn(image v1.Image) ([]saved, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	blobs := []saved{content("", manifest), content("", config)}
	var manifestErr, configErr error
	blobs[0].digest, manifestErr = image.Digest()
	blobs[1].digest, configErr = image.ConfigName()
	if err := errors.Join(manifestErr, configErr); err != nil {
		return nil, err
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		size, err := l.Size()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(blobs, func(b saved) bool { return b.digest == digest }) {
			blobs = append(blobs, saved{digest: digest, size: size, open: l.Compressed})
		}
	}
	for i := range blobs {
		blobs[i].name = blobName(blobs[i].digest)
	}
	return blobs, nil
}

// dockerImage is an image in the manifest.json of docker save.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func dockerImageOf(image v1.Image, name string) (dockerImage, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return dockerImage{}, err
	}
	docker := dockerImage{Config: blobName(manifest.Config.Digest), RepoTags: []string{name}}
	for _, l := range manifest.Layers {
		docker.Layers = append(docker.Layers, blobName(l.Digest))
	}
	return docker, nil
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func content(name string, text []byte) saved {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return saved{name, digestOf(text), int64(len(text)), open}
}
