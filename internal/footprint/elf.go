package footprint

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/linker"
)

// loose are the files of programs outside of packages, and the packages of their libraries.
type loose struct {
	files    map[string]bool // without links
	packages []*unit
	// dirs are the directories that the files themselves name. For the libraries of a library the linker also searches the
	// program's directories (DT_RPATH), and it takes libraries that are loaded already.
	dirs []string
}

// sorted returns the paths of the files.
func (l *loose) sorted() []string {
	var files []string
	for file := range l.files {
		files = append(files, file)
	}
	slices.Sort(files)
	return files
}

func (l *loose) sum(t tree) (Sum, error) {
	var c counter
	for _, file := range l.sorted() {
		if err := c.add(t, file); err != nil {
			return Sum{}, err
		}
	}
	return c.Sum, nil
}

// follow adds the libraries of files outside of packages. A library that belongs to a package ends the search there: the
// package declares its own dependencies.
func (h *Host) follow(files []string) (*loose, error) {
	l := &loose{files: map[string]bool{}}
	for len(files) > 0 {
		next := map[string]bool{}
		for _, file := range files {
			l.files[file] = true
			dependencies, err := l.needs(h.files, file)
			if err != nil {
				return nil, err
			}
			for _, n := range dependencies {
				if !l.files[n] {
					next[n] = true
				}
			}
		}
		owners, err := h.store.owners(h.files, next)
		if err != nil {
			return nil, err
		}
		files = nil
		for file := range next {
			switch u := owners[file]; {
			case u == nil:
				files = append(files, file)
			case !slices.Contains(l.packages, u):
				l.packages = append(l.packages, u)
			}
		}
	}
	return l, nil
}

// needs returns the files that a file needs before it runs, without links: an interpreter, and libraries, which it finds as ld.so(8)
// does without its cache.
func (l *loose) needs(t tree, file string) ([]string, error) {
	f, err := t.linked(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var found []string
	if f.Interpreter != "" {
		interpreter, err := t.resolve(f.Interpreter)
		if err != nil {
			return nil, fmt.Errorf("the interpreter of %s: %w", file, err)
		}
		found = append(found, interpreter)
	}
	l.dirs = slices.Concat(f.Dirs, l.dirs)
	dirs := slices.Concat(l.dirs, t.libraryDirs())
	for _, library := range f.Libraries {
		location, err := t.library(f, library, dirs)
		if err != nil {
			return nil, fmt.Errorf("%s needs the library %s, which is in none of %s; its footprint is unknown", file, library, strings.Join(dirs, ", "))
		}
		found = append(found, location)
	}
	return found, nil
}

// linked reads the needs of a file.
func (t tree) linked(file string) (linker.File, error) {
	content, err := os.Open(t.at(file))
	if err != nil {
		return linker.File{}, err
	}
	defer func() { _ = content.Close() }() // it is only read from
	return linker.Read(content, path.Dir(file))
}

// library finds a library of the same class and machine as f.
func (t tree) library(f linker.File, library string, dirs []string) (string, error) {
	if strings.Contains(library, "/") {
		return t.resolve(library)
	}
	for _, dir := range dirs {
		location, err := t.resolve(path.Join(dir, library))
		if err == nil && t.fits(f, location) {
			return location, nil
		}
	}
	return "", os.ErrNotExist
}

// fits reports whether a library is of the same class and machine as f. The linker skips other ones.
func (t tree) fits(f linker.File, file string) bool {
	l, err := t.linked(file)
	return err == nil && l.Class == f.Class && l.Machine == f.Machine
}

// libraryDirs are the directories of the dynamic linker, first from the configuration of glibc and musl, then the usual ones.
func (t tree) libraryDirs() []string {
	dirs := t.configured("/etc/ld.so.conf", 0)
	paths, _ := filepath.Glob(t.at("/etc/ld-musl-*.path")) // the pattern is valid
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err == nil {
			dirs = append(dirs, strings.FieldsFunc(string(text), func(r rune) bool { return r == ':' || r == '\n' })...)
		}
	}
	// Debian's linker has the directories of its architecture built in, such as /usr/lib/x86_64-linux-gnu.
	for _, parent := range []string{"/lib", "/usr/lib"} {
		entries, _ := os.ReadDir(t.at(parent)) // without the directory it has none
		for _, e := range entries {
			if strings.Contains(e.Name(), "-linux-") {
				dirs = append(dirs, path.Join(parent, e.Name()))
			}
		}
	}
	return append(dirs, "/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
}

// configured reads a configuration of glibc's linker, with its includes.
func (t tree) configured(file string, depth int) []string {
	text, err := t.text(file)
	if err != nil || depth > maxLinks {
		return nil
	}
	var dirs []string
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t:,", r) })
		if len(words) == 0 {
			continue
		}
		if words[0] != "include" {
			dirs = append(dirs, words...)
			continue
		}
		for _, pattern := range words[1:] {
			if !path.IsAbs(pattern) {
				pattern = path.Join(path.Dir(file), pattern)
			}
			included, _ := filepath.Glob(t.at(pattern)) // a bad pattern matches nothing, as for the linker
			for _, i := range included {
				dirs = append(dirs, t.configured("/"+strings.TrimPrefix(strings.TrimPrefix(i, filepath.Clean(t.root)), "/"), depth+1)...)
			}
		}
	}
	return dirs
}
