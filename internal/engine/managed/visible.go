package managed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// systemLinks are the links in /run to the programs, the kernel's modules and the drivers of a running NixOS or Guix.
var systemLinks = []string{"/run/current-system", "/run/booted-system", "/run/opengl-driver"}

// visible collects the directories and symbolic links below private directories that stay visible in a mount namespace.
type visible struct {
	private []string
	keep    []string
}

// add keeps a directory or link, unless it is outside of the private directories or below a directory that is kept.
func (v *visible) add(path string) {
	contains := func(parent string) bool { return strings.HasPrefix(path, parent+"/") }
	if slices.ContainsFunc(v.private, contains) && !slices.ContainsFunc(v.keep, contains) && !slices.Contains(v.keep, path) {
		v.keep = append(v.keep, path)
	}
}

// addPath keeps what a path needs to be valid: its directory, or the path itself if it is a directory, and each symbolic link on the way.
// The links are kept as links, because some programs act by the name that they are called by. A missing file needs nothing: the program
// that uses it reports it.
func (v *visible) addPath(path string) {
	links, real, err := resolve(path)
	if err != nil {
		return
	}
	info, err := os.Stat(real)
	if err != nil {
		return
	}
	if !info.IsDir() {
		real = filepath.Dir(real)
	}
	v.add(real)
	for _, link := range links {
		v.add(link)
	}
}

// maxLinks is the largest number of links in a path, as in the kernel.
const maxLinks = 40

// resolve returns the path without symbolic links, and the path of each link on the way. Only the last component of such a path is a link.
func resolve(path string) (links []string, real string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, "", err
	}
	split := func(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }
	rest := split(path)
	real = "/"
	for len(rest) > 0 {
		next := filepath.Join(real, rest[0]) // the parent of a real path is real too
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return nil, "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			real = next
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return nil, "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ELOOP}
		}
		destination, err := os.Readlink(next)
		if err != nil {
			return nil, "", err
		}
		if destination == "" {
			return nil, "", &fs.PathError{Op: "resolve", Path: next, Err: errors.New("the link is empty")}
		}
		if filepath.IsAbs(destination) {
			real = "/"
		}
		rest = append(split(destination), rest...)
	}
	return links, real, nil
}
