package footprint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a host's file system. It follows symbolic links itself, so that the absolute links of a copy stay in the copy.
type tree struct{ root string }

// maxLinks bounds the symbolic links of one path, like the kernel does.
const maxLinks = 40

// at returns the path of a resolved file in the file system of this process.
func (t tree) at(file string) string { return filepath.Join(t.root, file) }

// resolve returns the absolute path of a file without symbolic links. The file must exist.
func (t tree) resolve(name string) (string, error) {
	rest := strings.Split(path.Clean("/"+name), "/")[1:]
	location, links := "/", 0
	for len(rest) > 0 {
		next := rest[0]
		rest = rest[1:]
		if next == ".." || next == "." || next == "" {
			location = path.Join(location, next)
			continue
		}
		file := path.Join(location, next)
		info, err := os.Lstat(t.at(file))
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			location = file
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: %w", name, unix.ELOOP)
		}
		destination, err := os.Readlink(t.at(file))
		if err != nil {
			return "", err
		}
		if path.IsAbs(destination) {
			location = "/"
		}
		rest = append(strings.Split(destination, "/"), rest...)
	}
	return location, nil
}

// text returns the content of a file.
func (t tree) text(name string) (string, error) {
	b, err := os.ReadFile(t.at(name))
	return string(b), err
}

// has reports whether a directory or file exists.
func (t tree) has(name string) bool {
	_, err := os.Lstat(t.at(name))
	return err == nil
}

// counter counts files, each once.
type counter struct {
	Sum
	seen map[inode]bool
}

type inode struct{ dev, ino uint64 }

// add counts a regular file or a symbolic link. Other files and missing files count nothing: hosts leave out the
// documentation of packages.
func (c *counter) add(t tree, file string) error {
	var s unix.Stat_t
	switch err := unix.Lstat(t.at(file), &s); {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return fmt.Errorf("read the size of %s: %w", file, err)
	}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		c.Files++
	case unix.S_IFREG:
		id := inode{uint64(s.Dev), s.Ino} //nolint:unconvert // Dev has 32 bits on some architectures
		if s.Nlink > 1 && c.seen[id] {
			return nil
		}
		if s.Nlink > 1 {
			if c.seen == nil {
				c.seen = map[inode]bool{}
			}
			c.seen[id] = true
		}
		c.Files++
		c.Bytes += s.Size
	}
	return nil
}
