package footprint

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// aptLists is the directory of apt's index of packages.
const aptLists = "/var/lib/apt/lists"

// decompressors open the formats of apt's index.
var decompressors = map[string]func(io.Reader) (io.Reader, error){
	"":     certain(func(r io.Reader) io.Reader { return r }),
	".lz4": certain(func(r io.Reader) io.Reader { return lz4.NewReader(r) }),
	".gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	".xz":  func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) },
	".zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
}

// certain makes a decompressor of one that reports errors only when it reads.
func certain(open func(io.Reader) io.Reader) func(io.Reader) (io.Reader, error) {
	return func(r io.Reader) (io.Reader, error) { return open(r), nil }
}

// aptIndex reads the packages in apt's index that are not installed, in their highest versions.
func (d *dpkg) aptIndex(t tree) ([]*unit, error) {
	entries, err := os.ReadDir(t.at(aptLists))
	if err != nil && !missing(err) {
		return nil, unreadable("apt", err)
	}
	names, highest := map[string]bool{}, map[string]*unit{}
	for _, u := range d.units {
		names[u.name] = true
	}
	for _, e := range entries {
		_, kind, ok := strings.Cut(e.Name(), "_Packages")
		open := decompressors[kind]
		if !ok || open == nil {
			continue
		}
		units, err := readIndex(filepath.Join(t.at(aptLists), e.Name()), open)
		if err != nil {
			return nil, unreadable("apt", fmt.Errorf("%s/%s: %w", aptLists, e.Name(), err))
		}
		for _, u := range units {
			if names[u.name] || u.arch != d.arch && u.arch != "all" {
				continue
			}
			if old := highest[u.name]; old != nil {
				if c, err := compareDebian(u.version, old.version); err != nil || c <= 0 {
					continue
				}
			}
			highest[u.name] = u
		}
	}
	var units []*unit
	for _, u := range highest {
		units = append(units, u)
	}
	return newStore("", units, nothing{}).units, nil // sorted
}

func readIndex(file string, open func(io.Reader) (io.Reader, error)) ([]*unit, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	content, err := open(f)
	if err != nil {
		return nil, err
	}
	if c, ok := content.(*zstd.Decoder); ok {
		defer c.Close()
	}
	return readControl(content, false)
}
