// Package layouttest makes the paths of programs, sockets and configuration files of distributions below a temporary directory, so that tests
// of lookups need no machine of each distribution. Only tests import it.
package layouttest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// Layout is the paths of a distribution.
type Layout struct {
	Name string
	// Path is the PATH of root at a console.
	Path string
	// Bundled lists programs that only another program of the layout finds: they are not installed for users.
	Bundled  []string
	Packages []Package
}

// Package is the files of a package, of a release or of running daemons.
type Package struct {
	// Source is the name with the version, and the file or page that names the paths.
	Source string
	// Files are paths. "PATH -> DESTINATION" is a symbolic link, and "PATH = TEXT" has a content.
	Files []string
}

// Machine is a layout in a directory.
type Machine struct {
	Layout
	Root  string
	paths []string // of its files and links, without Root
}

// Each runs a test on each layout.
func Each(t *testing.T, test func(t *testing.T, m Machine)) {
	t.Helper()
	for _, l := range layouts {
		t.Run(l.Name, func(t *testing.T) { test(t, l.make(t)) })
	}
}

func (l Layout) make(t *testing.T) Machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	m := Machine{Layout: l, Root: root}
	for _, p := range l.Packages {
		for _, file := range p.Files {
			path, destination, isLink := strings.Cut(file, " -> ")
			path, text, _ := strings.Cut(path, " = ")
			m.paths = append(m.paths, path)
			must.Do(t, os.MkdirAll(filepath.Dir(m.At(path)), 0o755))
			if !isLink {
				must.Do(t, os.WriteFile(m.At(path), []byte(strings.ReplaceAll(text, "/nix/store", m.At("/nix/store"))), 0o755))
				continue
			}
			if filepath.IsAbs(destination) {
				destination = m.At(destination)
			}
			must.Do(t, os.Symlink(destination, m.At(path)))
		}
	}
	t.Setenv("PATH", strings.Join(m.Under(filepath.SplitList(l.Path)), string(os.PathListSeparator)))
	return m
}

// At returns a path below the root.
func (m Machine) At(path string) string { return filepath.Join(m.Root, path) }

// Under returns paths below the root.
func (m Machine) Under(paths []string) []string {
	var rooted []string
	for _, path := range paths {
		rooted = append(rooted, m.At(path))
	}
	return rooted
}

// Redirect leads a lookup to the layout until the end of the test: it changes the lookup's list of paths.
func (m Machine) Redirect(t *testing.T, list *[]string) {
	t.Helper()
	original := *list
	*list = m.Under(original)
	t.Cleanup(func() { *list = original })
}

// Has reports whether a file of the layout has this name.
func (m Machine) Has(name string) bool {
	return slices.ContainsFunc(m.paths, func(path string) bool { return filepath.Base(path) == name })
}

// HasPath reports whether the layout has this file.
func (m Machine) HasPath(path string) bool { return slices.Contains(m.paths, path) }

// Paths lists the files and links of the layout in a directory of the root.
func (m Machine) Paths(dir string) (paths []string) {
	for _, path := range m.paths {
		if strings.HasPrefix(path, dir+"/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// Expect reports an error unless the lookup of a program has found a file of the layout with this name.
func (m Machine) Expect(t *testing.T, name, path string, err error) {
	t.Helper()
	real, evalErr := filepath.EvalSymlinks(path)
	if err != nil || evalErr != nil || filepath.Base(path) != name || !strings.HasPrefix(real, m.Root+"/") {
		t.Errorf("%s is %q, %v; want one of %s", name, path, err, strings.Join(m.paths, ", "))
	}
}
