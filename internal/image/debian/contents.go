package debian

import (
	"archive/tar"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// Paths of the image's lists of its contents.
const (
	contentsPath = "usr/share/touchstone/contents.json"
	sbomPath     = "usr/share/touchstone/sbom.spdx.json"
)

// Contents lists the contents of an image.
type Contents struct {
	Suite string `json:"suite"`
	Arch  string `json:"arch"`
	// Date is the date of the packages' suite.
	Date string `json:"date"`
	// Packages are the packages with a file in the image, and our own, by name.
	Packages []Part `json:"packages"`
}

// Part is a package of an image.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Source is the source package in Debian, empty for our own.
	Source string `json:"source,omitempty"`
	// Licences are the short names in the copyright file, if it has the machine-readable format. The file itself is in the image,
	// at Copyright.
	Licences  []string `json:"licences,omitempty"`
	Copyright string   `json:"copyright,omitempty"`
	// Files and Size count the files of the package in the image; Size is in bytes.
	Files int   `json:"files"`
	Size  int64 `json:"size"`
	// SHA256 is the checksum of the package's file.
	SHA256 string `json:"sha256,omitempty"`
}

// maxText bounds a copyright file, in bytes.
const maxText = 4 << 20

// addLicences adds the copyright files of packages and the common licences that they mention. It returns the licences by package.
func (l layout) addLicences(t *tree, packages []string) (map[string][]string, error) {
	licences, names := map[string][]string{}, map[string]bool{}
	for _, pkg := range packages {
		name := copyrightPath(pkg)
		file, links, err := t.resolve(name)
		if err != nil {
			return nil, fmt.Errorf("look for the licence of %s: %w", pkg, err)
		}
		// The documentation of a package may be a link to another package's documentation.
		text, err := t.read(file, maxText)
		if err != nil {
			return nil, fmt.Errorf("read the licence of %s: %w", pkg, err)
		}
		licences[pkg] = licencesIn(string(text))
		if err := l.packaged(t, pkg, append(links, file)...); err != nil {
			return nil, err
		}
		for _, found := range commonLicence.FindAllString(string(text), -1) {
			names[strings.TrimRight(found, ".-")] = true
		}
	}
	for name := range names {
		file, links, err := t.resolve(name)
		if err != nil || t.nodes[file].header.Typeflag != tar.TypeReg {
			continue // a pattern in the text, a removed licence, or the folder itself
		}
		if err := l.packaged(t, "base-files", append(links, file)...); err != nil {
			return nil, err
		}
	}
	return licences, nil
}

func copyrightPath(pkg string) string { return "usr/share/doc/" + pkg + "/copyright" }

var commonLicence = regexp.MustCompile(`/usr/share/common-licenses/[A-Za-z0-9.-]+`)

// licencesIn returns the short names of licences in a copyright file of the machine-readable format
// (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/), each once, sorted.
func licencesIn(text string) []string {
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "Format:") && !strings.HasPrefix(first, "Format-Specification:") {
		return nil
	}
	var names []string
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "License:")
		if name = strings.TrimSpace(name); ok && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// describe lists the contents of layers.
func describe(lock Lock, debs []*deb, licences map[string][]string, version string, layers ...layout) Contents {
	parts := map[string]*Part{}
	for _, d := range debs {
		parts[d.Name] = &Part{
			Name: d.Name, Version: d.Version, Source: d.source, SHA256: d.SHA256,
			Licences: licences[d.Name], Copyright: "/" + copyrightPath(d.Name),
		}
	}
	parts[""] = &Part{Name: "touchstone", Version: version, Licences: []string{ownLicence}}
	for _, l := range layers {
		for _, e := range l {
			if p := parts[e.pkg]; p != nil && e.typeflag == tar.TypeReg {
				p.Files++
				p.Size += e.size
			}
		}
	}
	maps.DeleteFunc(parts, func(pkg string, p *Part) bool { return p.Files == 0 && pkg != "" })
	c := Contents{Suite: lock.Suite, Arch: lock.Arch, Date: lock.Date.UTC().Format(time.RFC3339)}
	for _, p := range parts {
		c.Packages = append(c.Packages, *p)
	}
	slices.SortFunc(c.Packages, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// ownLicence is the licence of Touchstone.
const ownLicence = "Apache-2.0"

func (c Contents) encode() (string, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	return string(text) + "\n", err
}

func decodeContents(text []byte) (Contents, error) {
	var c Contents
	if err := json.Unmarshal(text, &c); err != nil {
		return Contents{}, fmt.Errorf("read /%s: %w", contentsPath, err)
	}
	if len(c.Packages) == 0 {
		return Contents{}, errors.New("it has no package")
	}
	return c, nil
}

// owners maps files to their packages.
func owners(debs []*deb) map[string]string {
	names := map[string]string{}
	for _, d := range debs {
		for _, f := range d.files {
			names[path.Clean(f)] = d.Name
		}
	}
	return names
}

// maxBill bounds the size of an image's lists of contents, in bytes.
const maxBill = 16 << 20

// ContentsOf returns the contents of an image that Build has built.
func ContentsOf(img v1.Image) (Contents, error) {
	text, err := listOf(img, contentsPath)
	if err != nil {
		return Contents{}, err
	}
	c, err := decodeContents(text)
	if err != nil {
		return Contents{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return Contents{}, err
	}
	index := slices.IndexFunc(c.Packages, func(p Part) bool { return p.SHA256 == "" })
	if index < 0 || len(layers) <= pinnedLayers { // images of builder 1 had all numbers in the list, and one layer fewer
		return c, nil
	}
	for _, l := range layers[1:] { // the list has the files of the first layer
		if err := c.Packages[index].count(l); err != nil {
			return Contents{}, fmt.Errorf("count the files of %s: %w", c.Packages[index].Name, err)
		}
	}
	return c, nil
}

// count adds the files of a layer to a package.
func (p *Part) count(l v1.Layer) error {
	content, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeReg {
			p.Files++
			p.Size += header.Size
		}
	}
}

// SBOM returns the bill of materials of an image that Build has built: SPDX 2.3, as JSON.
func SBOM(img v1.Image) ([]byte, error) { return listOf(img, sbomPath) }

func listOf(img v1.Image, name string) ([]byte, error) {
	text, err := image.ReadFile(img, name, maxBill)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrForeign
	}
	return text, err
}

// ErrForeign reports that Build has not built an image, so that it has no list of contents.
var ErrForeign = errors.New("the image was not built by touchstone and has no list of contents")
