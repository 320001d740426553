// Package compare compares two images: their configurations, and their files layer by layer, also across architectures. It answers
// the question of sateri, table 4.3: which layers of an image are the same for another architecture, and why the others differ.
//
// Images are untrusted. The package reads layers as streams and writes nothing to the disk, so paths, links and devices of an image
// cannot do harm. Its memory holds the files of one pair of layers at a time. It refuses layers that exceed Limits, names that lead
// out of the root, broken archives, media types that are not layers, and content that does not match its digest.
//
// The names of files decide about equality, and not their order: two layers with different digests can hold the same files.
package compare

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Limits bound the work for one image.
type Limits struct {
	Layers  int
	Bytes   int64 // of all uncompressed layers
	Entries int   // of all layers
	Names   int64 // bytes in all names and targets of links
}

// DefaultLimits are far above the size of images in use. Two images at the limits, each with a single layer, take about 1 GiB of memory.
func DefaultLimits() Limits {
	return Limits{Layers: 1000, Bytes: 64 << 30, Entries: 1_000_000, Names: 128 << 20}
}

// Options are the options of Compare. The zero value has the default limits.
type Options struct {
	Limits Limits
	// Progress is called at the beginning of each layer and after each step of 64 MiB within it, with the side (a or b), the
	// number of the layer from 1, the number of layers, and the bytes that were read of the layer. It may be nil.
	Progress func(side string, layer, layers int, bytes int64)
}

// Comparison is the result of Compare.
type Comparison struct {
	A Image `json:"a"`
	B Image `json:"b"`
	// Same is set if the configurations and all layers are the same.
	Same bool `json:"same"`
	// Config lists the fields of the configurations that differ.
	Config []Field `json:"config"`
	Layers []Pair  `json:"layers"`
}

// Image describes an image.
type Image struct {
	Name string `json:"name"`
	// ID is the digest of the configuration, which contains the digests of all layers.
	ID       string `json:"id"`
	Platform string `json:"platform"`
	Layers   int    `json:"layers"`
	// Size is the size of all regular files, in bytes. Later layers may hide some of them.
	Size int64 `json:"size"`
	// Files counts the regular files.
	Files int `json:"files"`
	// ELF counts the ELF files by architecture, in Go's naming.
	ELF map[string]int `json:"elf,omitempty"`
}

// Result is the result of the comparison of two layers.
type Result string

// The results.
const (
	Same      Result = "same"       // the digests of the uncompressed layers are equal
	SameFiles Result = "same files" // the digests differ, because the archives order or encode the same files differently
	SameTimes Result = "times"      // the files differ in nothing but their times of modification
	Different Result = "different"
	OnlyA     Result = "only in a"
	OnlyB     Result = "only in b"
)

// Pair is a pair of layers, or a layer without a counterpart.
type Pair struct {
	A      *Layer `json:"a,omitempty"`
	B      *Layer `json:"b,omitempty"`
	Result Result `json:"result"`
	// Why is the reason in words, empty for the same layer.
	Why string `json:"why,omitempty"`
	// Files lists the differing files of two layers in the order of their names.
	Files []File `json:"files,omitempty"`
}

// Layer describes a layer.
type Layer struct {
	// Number counts the layers of the image from 1.
	Number int    `json:"number"`
	DiffID string `json:"diff_id"`
	// CreatedBy is the command of the image's build. It is empty if the image does not have it.
	CreatedBy string `json:"created_by,omitempty"`
	// Size is the size of the regular files in bytes, Files their number.
	Size  int64 `json:"size"`
	Files int   `json:"files"`
	// Entries counts the entries of the archive, with directories, links and whiteouts.
	Entries int `json:"entries"`
	// Duplicates counts the entries that a later entry of the same name replaces.
	Duplicates int `json:"duplicates,omitempty"`
	// ELF counts the ELF files by architecture, in Go's naming.
	ELF map[string]int `json:"elf,omitempty"`
}

// Compare compares two images by their names. It verifies the content of all layers against the configurations.
func Compare(ctx context.Context, nameA string, a v1.Image, nameB string, b v1.Image, o Options) (*Comparison, error) {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	sideA, err := newSide("a", nameA, a, o)
	if err != nil {
		return nil, err
	}
	sideB, err := newSide("b", nameB, b, o)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Config: compareConfigs(sideA.config, sideB.config)}
	isSame := len(c.Config) == 0
	for _, pair := range align(sideA.keys(), sideB.keys()) {
		p, err := compareLayers(ctx, sideA, sideB, pair)
		if err != nil {
			return nil, err
		}
		isSame = isSame && p.Result == Same
		c.Layers = append(c.Layers, p)
	}
	c.A, c.B, c.Same = sideA.about, sideB.about, isSame
	return c, nil
}

// compareLayers reads and compares a pair of layers.
func compareLayers(ctx context.Context, a, b *side, pair places) (p Pair, err error) {
	var filesA, filesB listing
	if pair.a >= 0 {
		if p.A, filesA, err = a.read(ctx, pair.a); err != nil {
			return Pair{}, err
		}
	}
	if pair.b >= 0 {
		if p.B, filesB, err = b.read(ctx, pair.b); err != nil {
			return Pair{}, err
		}
	}
	switch {
	case p.B == nil:
		p.Result, p.Why = OnlyA, contents(p.A)
	case p.A == nil:
		p.Result, p.Why = OnlyB, contents(p.B)
	case p.A.DiffID == p.B.DiffID:
		p.Result = Same
	default:
		p.Files = differences(filesA, filesB)
		p.Result, p.Why = judge(p.Files)
	}
	return p, nil
}

// side is one of the compared images.
type side struct {
	side    string
	options Options
	config  *v1.ConfigFile
	layers  []v1.Layer
	about   Image
	left    Limits // for the rest of the image
}

func newSide(name, title string, image v1.Image, o Options) (_ *side, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %s: %w", title, err)
		}
	}()
	s := &side{side: name, options: o, left: o.Limits}
	if s.config, err = image.ConfigFile(); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	id, err := image.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	n := len(s.config.RootFS.DiffIDs)
	if n > o.Limits.Layers {
		return nil, fmt.Errorf("it has %d layers, more than %d", n, o.Limits.Layers)
	}
	if s.layers, err = image.Layers(); err != nil {
		return nil, fmt.Errorf("read the list of layers: %w", err)
	}
	if len(s.layers) != n {
		return nil, fmt.Errorf("its manifest has %d layers, but its configuration has %d: it is damaged, or it is no image of a container", len(s.layers), n)
	}
	for i, layer := range s.layers {
		if kind, err := layer.MediaType(); err != nil || !kind.IsLayer() {
			return nil, errors.Join(fmt.Errorf("layer %d: the media type %q is not the type of a layer", i+1, kind), err)
		}
	}
	s.about = Image{Name: title, ID: id.String(), Layers: n, ELF: map[string]int{}}
	if p := s.config.Platform(); p != nil {
		s.about.Platform = p.String()
	}
	return s, nil
}

// keys identify the layers for align.
func (s *side) keys() []key {
	var commands []string
	for _, h := range s.config.History {
		if !h.EmptyLayer {
			commands = append(commands, h.CreatedBy)
		}
	}
	keys := make([]key, len(s.layers))
	for i, id := range s.config.RootFS.DiffIDs {
		keys[i].diffID = id.String()
		if len(commands) == len(s.layers) { // otherwise the commands and the layers cannot be matched
			keys[i].command = commands[i]
		}
	}
	return keys
}

// read reads a layer by its place from 0.
func (s *side) read(ctx context.Context, index int) (*Layer, listing, error) {
	progress := func(bytes int64) {
		if s.options.Progress != nil {
			s.options.Progress(s.side, index+1, len(s.layers), bytes)
		}
	}
	progress(0)
	files, layer, err := readLayer(ctx, s.layers[index], s.config.RootFS.DiffIDs[index], &s.left, progress)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, nil, fmt.Errorf("image %s: layer %d of %d: %w", s.about.Name, index+1, len(s.layers), err)
	}
	layer.Number, layer.CreatedBy = index+1, s.keys()[index].command
	s.about.Size += layer.Size
	s.about.Files += layer.Files
	for arch, n := range layer.ELF {
		s.about.ELF[arch] += n
	}
	return layer, files, nil
}
