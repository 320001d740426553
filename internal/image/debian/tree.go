package debian

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// tree is the file system in a tar archive. It is read in place, because only a part of the hundreds of megabytes becomes the
// image.
type tree struct {
	file  *os.File
	nodes map[string]*node // by path, without a slash at the beginning
}

// node is a file, directory or link.
type node struct {
	header *tar.Header
	offset int64 // of the content
}

// openTree indexes a tar archive. The file must stay open.
func openTree(file *os.File) (*tree, error) {
	t := &tree{file: file, nodes: map[string]*node{}}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := tar.NewReader(file)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive of packages: %w", err)
		}
		// The reader has just read the header; it seeks over contents.
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		name := relative(header.Name)
		if header.Typeflag == tar.TypeLink {
			target, ok := t.nodes[relative(header.Linkname)]
			if !ok {
				return nil, fmt.Errorf("read the archive of packages: %s is a link to %s, which does not exist", name, header.Linkname)
			}
			t.nodes[name] = target
			continue
		}
		t.nodes[name] = &node{header, offset}
	}
}

// relative returns a name of the archive without a prefix such as "./" or "/".
func relative(name string) string { return path.Clean("/" + name)[1:] }

// merged are the directories that Debian has in /usr, with links at the root.
var merged = []string{"bin", "lib", "lib64", "sbin"}

// maxLinks bounds the number of links to a file, as in the kernel.
const maxLinks = 40

// resolve follows the links of a path. It returns the path of the target and the paths of the links, without the links of merged.
func (t *tree) resolve(name string) (file string, links []string, err error) {
	rest := strings.Split(strings.Trim(name, "/"), "/")
	location := ""
	for len(rest) > 0 {
		element := rest[0]
		rest = rest[1:]
		switch element {
		case "", ".":
			continue
		case "..":
			location = strings.TrimPrefix(path.Dir("/"+location), "/")
			continue
		}
		if location == "" && slices.Contains(merged, element) {
			location = "usr"
		}
		next := path.Join(location, element)
		n, ok := t.nodes[next]
		if !ok {
			return "", nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		if n.header.Typeflag != tar.TypeSymlink {
			location = next
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return "", nil, fmt.Errorf("%s: too many links", name)
		}
		if path.IsAbs(n.header.Linkname) {
			location = ""
		}
		rest = append(strings.Split(strings.Trim(n.header.Linkname, "/"), "/"), rest...)
	}
	return location, links, nil
}

// has reports whether a path exists.
func (t *tree) has(name string) bool {
	_, _, err := t.resolve(name)
	return err == nil
}

// open returns the content of a regular file, by a path without links.
func (t *tree) open(name string) (*io.SectionReader, error) {
	n, ok := t.nodes[name]
	if !ok || n.header.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NewSectionReader(t.file, n.offset, n.header.Size), nil
}

// read returns the content of a regular file of at most limit bytes.
func (t *tree) read(name string, limit int64) ([]byte, error) {
	r, err := t.open(name)
	if err != nil {
		return nil, err
	}
	if r.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", name, r.Size(), limit)
	}
	return io.ReadAll(r)
}
