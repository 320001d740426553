package debian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// pin describes the layers that follow from a list of packages alone. The binary embeds a pin beside each list. With its own programs it
// computes the digest of the complete image from the pin, so it recognises its image without building it.
//
// As a file it is text:
//
//	touchstone-pin 1
//	lock 7f41…0c
//	layer sha256:52ab…37 sha256:90cd…1e 45822711
//	layer sha256:8801…f4 sha256:17aa…09 6361202
//
// The lock is the SHA-256 of the list of packages. A layer has its digest, the digest of its uncompressed content, and its size.
type pin struct {
	lock   string
	layers []pinned
}

// pinHead begins a pin and contains the version of the format.
const pinHead = "touchstone-pin 1"

// pinnedLayers is the number of layers in front of the layer with Touchstone's programs.
const pinnedLayers = 2

// pinned is a layer without its content.
type pinned struct {
	digest, diffID v1.Hash
	size           int64
}

// errPinned reports that the binary has no content of a layer.
var errPinned = errors.New("the binary has only the digest of this layer")

func (p pinned) Digest() (v1.Hash, error)             { return p.digest, nil }
func (p pinned) DiffID() (v1.Hash, error)             { return p.diffID, nil }
func (p pinned) Size() (int64, error)                 { return p.size, nil }
func (p pinned) MediaType() (types.MediaType, error)  { return types.OCILayer, nil }
func (p pinned) Compressed() (io.ReadCloser, error)   { return nil, errPinned }
func (p pinned) Uncompressed() (io.ReadCloser, error) { return nil, errPinned }
func (l Lock) sum() string                            { return sumOfText(l.Format()) }
func pinFile(arch string) string                      { return "lock/" + arch + ".pin" }

func sumOfText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// embeddedPin returns the pin in the binary for an architecture, by Go's name.
func embeddedPin(arch string) (pin, error) {
	content, err := locks.ReadFile(pinFile(arch))
	if err != nil {
		return pin{}, err
	}
	p, err := parsePin(string(content))
	if err != nil {
		return pin{}, fmt.Errorf("embedded digests of the image for %s: %w", arch, err)
	}
	return p, nil
}

func parsePin(content string) (pin, error) {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if len(lines) != 2+pinnedLayers || lines[0] != pinHead {
		return pin{}, fmt.Errorf("it must begin with %q, and have a lock and %d layers", pinHead, pinnedLayers)
	}
	lock, ok := strings.CutPrefix(lines[1], "lock ")
	if !ok || !isSHA256(lock) {
		return pin{}, fmt.Errorf("%q is not the checksum of a list", lines[1])
	}
	p := pin{lock: lock}
	for _, line := range lines[2:] {
		fields := strings.Split(line, " ")
		if len(fields) != 4 || fields[0] != "layer" {
			return pin{}, fmt.Errorf("%q is not a layer", line)
		}
		var l pinned
		var errs [3]error
		l.digest, errs[0] = v1.NewHash(fields[1])
		l.diffID, errs[1] = v1.NewHash(fields[2])
		l.size, errs[2] = strconv.ParseInt(fields[3], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return pin{}, err
		}
		p.layers = append(p.layers, l)
	}
	return p, nil
}

func (p pin) format() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nlock %s\n", pinHead, p.lock)
	for _, l := range p.layers {
		fmt.Fprintf(&b, "layer %s %s %d\n", l.digest, l.diffID, l.size)
	}
	return b.Bytes()
}

// pinOf describes layers that were built from a list.
func pinOf(lock Lock, layers []v1.Layer) (pin, error) {
	if len(layers) < pinnedLayers {
		return pin{}, fmt.Errorf("it has %d layers, fewer than %d", len(layers), pinnedLayers)
	}
	p := pin{lock: lock.sum()}
	for _, layer := range layers[:pinnedLayers] {
		var l pinned
		var errs [3]error
		l.digest, errs[0] = layer.Digest()
		l.diffID, errs[1] = layer.DiffID()
		l.size, errs[2] = layer.Size()
		if err := errors.Join(errs[:]...); err != nil {
			return pin{}, err
		}
		p.layers = append(p.layers, l)
	}
	return p, nil
}

// Pin returns the digests of the image's layers for the binary: see docs/image.md. A maintainer stores them beside the list.
func (i *Image) Pin() ([]byte, error) {
	layers, err := i.image.Layers()
	if err != nil {
		return nil, err
	}
	p, err := pinOf(i.builder.lock, layers)
	return p.format(), err
}

// expected returns the digest of the image. It is nil for a list of packages that is not embedded, because only a build gives that digest.
func (b *builderOf) expected() (*v1.Hash, error) {
	p, err := embeddedPin(b.Arch)
	if err != nil || p.lock != b.lock.sum() {
		return nil, err
	}
	ours, err := b.ours()
	if err != nil {
		return nil, err
	}
	layers := make([]v1.Layer, 0, pinnedLayers+1)
	for _, l := range p.layers {
		layers = append(layers, l)
	}
	img, err := assemble(b.Arch, append(layers, ours)...)
	if err != nil {
		return nil, err
	}
	digest, err := img.Digest()
	return &digest, err
}

// check returns an error if an image is not the image of the list.
func (b *builderOf) check(img v1.Image) error {
	want, err := b.expected()
	if err != nil || want == nil {
		return err
	}
	got, err := img.Digest()
	if err == nil && got != *want {
		err = fmt.Errorf("%w: it has the digest %s instead of %s", errOther, got, *want)
	}
	return err
}

// errOther reports that an image is not the workload image of this binary.
var errOther = errors.New("it is not the workload image of this touchstone")

// Naming returns the function that names an image for image.Cache.Import. The workload image of this binary gets its name by its digest,
// and no other image does. The parameter is the user's name, or empty.
func Naming(name string) image.Naming {
	return func(img v1.Image, claimed string) (string, error) {
		if name != "" {
			return image.Named(name)(img, claimed)
		}
		config, err := img.ConfigFile()
		if err != nil {
			return "", err
		}
		lock, err := Embedded(config.Architecture)
		if err == nil {
			b := &builderOf{Options: Options{Arch: config.Architecture}, lock: lock}
			if err = b.programs(); err == nil {
				err = b.check(img)
			}
			if err == nil {
				return b.name, nil
			}
		}
		if image.IsOwn(claimed) {
			return "", fmt.Errorf("it calls itself %s, but %w; %s", claimed, err,
				"another version, another list of packages or another program made it: load it as an image of your own with --name NAME")
		}
		return image.Named("")(img, claimed)
	}
}
