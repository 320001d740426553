// Package parts finds the programs that `touchstone setup` has installed: runtimes and engines, in a store of their own.
//
// The store is no part of the system: nothing else looks into it, and no configuration of a daemon names it. A part has the layout
//
//	ROOT/NAME/VERSION/bin/PROGRAM
//	ROOT/NAME/VERSION/part.json
//	ROOT/NAME/current -> VERSION
//
// Prepend puts the programs of the current versions in front of PATH. So the lookups of every engine find them, also in a private daemon,
// which keeps the directories of PATH visible. SystemPath is PATH without the store, for the copies of the system.
//
// The package refuses a store, or a file in it, that another user can change (package trust): its programs run as root.
package parts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/trust"
)

// Variable names the directory of the store.
const Variable = "TOUCHSTONE_RUNTIMES"

// The names in the store.
const (
	Record  = "part.json" // the record of a version
	Current = "current"   // the link to the version in use
	binDir  = "bin"
)

// Kind is the kind of an origin.
type Kind string

// The kinds of origins.
const (
	Package Kind = "package" // a package of the distribution
	Release Kind = "release" // a release of the project
	Build   Kind = "build"   // a build from pinned sources
)

// Kinds lists the kinds, the preferred ones first.
func Kinds() []Kind { return []Kind{Package, Release, Build} }

// Origin is where the programs of a part come from.
type Origin struct {
	Kind   Kind   `json:"kind"`
	Source string `json:"source"`
	// Digest is the checksum of the source with the name of its method, such as sha256:… or h1:….
	Digest string `json:"digest"`
}

// Program is a program of a part.
type Program struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Part is one version of a part.
type Part struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Licence    string    `json:"licence"`
	Origin     Origin    `json:"origin"`
	Programs   []Program `json:"programs"`
	Touchstone string    `json:"touchstone"` // the version that installed it

	// Dir is the directory of the version. Current reports that this version is in use.
	Dir     string `json:"-"`
	Current bool   `json:"-"`
}

// Bin is the directory of the part's programs.
func (p Part) Bin() string { return filepath.Join(p.Dir, binDir) }

// Text describes the origin on one line.
func (o Origin) Text() string { return fmt.Sprintf("%s of %s (%s)", o.Kind, o.Source, o.Digest) }

// String is the name with the version, as in runc@1.5.2.
func (p Part) String() string { return p.Name + "@" + p.Version }

// Root returns the directory of the store, which may not exist: the directory of TOUCHSTONE_RUNTIMES, /var/lib/touchstone/runtimes for root,
// or a directory below the user's data.
func Root() (string, error) {
	root := os.Getenv(Variable)
	switch {
	case root == "" && os.Geteuid() == 0:
		return "/var/lib/touchstone/runtimes", nil
	case root == "":
		data := os.Getenv("XDG_DATA_HOME")
		if !filepath.IsAbs(data) { // the XDG specification ignores a relative path
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find the directory of installed runtimes: %w; name it with %s=DIR", err, Variable)
			}
			data = filepath.Join(home, ".local/share")
		}
		return filepath.Join(data, "touchstone/runtimes"), nil
	case !filepath.IsAbs(root):
		return "", fmt.Errorf("%s=%s is no absolute path; give it as %s=%s", Variable, root, Variable, filepath.Join("/", root))
	case strings.Contains(root, string(filepath.ListSeparator)):
		return "", fmt.Errorf("%s=%s contains %q, which separates the directories of PATH; choose another directory", Variable, root, filepath.ListSeparator)
	}
	return filepath.Clean(root), nil
}

// The names of parts and versions. A version is a directory of PATH, so it has no colon.
var (
	partName    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	versionName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_-]*$`)
)

// List returns all versions in a store, by name and version. Parts that another user can change are an error, like a broken record.
// A store that does not exist has none.
func List(root string) ([]Part, error) {
	if _, err := trust.Directory(root); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list the installed runtimes: %w", err)
	}
	var list []Part
	var errs []error
	for _, name := range children(root, partName) {
		current, _ := os.Readlink(filepath.Join(root, name, Current)) // none without a link
		for _, version := range children(filepath.Join(root, name), versionName) {
			if version == Current {
				continue
			}
			part, err := Read(filepath.Join(root, name, version))
			if err == nil && (part.Name != name || part.Version != version) {
				err = fmt.Errorf("%s is the record of %s", filepath.Join(root, name, version, Record), part)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("read the installed %s@%s: %w; remove it with touchstone setup --remove %s@%s", name, version, err, name, version))
				continue
			}
			part.Current = version == current
			list = append(list, part)
		}
	}
	slices.SortFunc(list, func(a, b Part) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), Compare(a.Version, b.Version))
	})
	return list, errors.Join(errs...)
}

// children lists the entries of a directory whose names match.
func children(dir string, pattern *regexp.Regexp) []string {
	entries, _ := os.ReadDir(dir) // a file is the directory of no part
	var names []string
	for _, e := range entries {
		if pattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// maxRecord bounds the size of a record, in bytes.
const maxRecord = 1 << 20

// Read reads the part in a directory. It refuses files that another user can change, and a record whose programs do not exist.
func Read(dir string) (Part, error) {
	text, err := trust.ReadFile(filepath.Join(dir, Record), maxRecord)
	if err != nil {
		return Part{}, err
	}
	part := Part{Dir: dir}
	if err := json.Unmarshal(text, &part); err != nil {
		return Part{}, fmt.Errorf("%s: %w", filepath.Join(dir, Record), err)
	}
	if !partName.MatchString(part.Name) || !versionName.MatchString(part.Version) || len(part.Programs) == 0 {
		return Part{}, fmt.Errorf("%s: it lacks a name, a version or programs", filepath.Join(dir, Record))
	}
	for _, p := range part.Programs {
		if p.Name != filepath.Base(p.Name) {
			return Part{}, fmt.Errorf("%s: %q is no name of a program", filepath.Join(dir, Record), p.Name)
		}
		if err := trust.Entry(filepath.Join(part.Bin(), p.Name)); err != nil {
			return Part{}, err
		}
	}
	if _, err := trust.Directory(part.Bin()); err != nil {
		return Part{}, err
	}
	return part, nil
}

// Prepend puts the programs of the current parts in front of PATH of this program, and so of all programs that it starts. A run keeps the
// versions of its start, because the directories have no link.
func Prepend() error {
	root, err := Root()
	if err != nil {
		return err
	}
	list, err := List(root)
	dirs := []string{}
	for _, p := range list {
		if p.Current {
			dirs = append(dirs, p.Bin())
		}
	}
	if len(dirs) > 0 {
		dirs = append(dirs, withoutStore(root)...)
		err = errors.Join(err, os.Setenv("PATH", strings.Join(dirs, string(filepath.ListSeparator))))
	}
	return err
}

// SystemPath lists the directories of PATH without the store.
func SystemPath() []string {
	root, err := Root()
	if err != nil {
		return filepath.SplitList(os.Getenv("PATH"))
	}
	return withoutStore(root)
}

func withoutStore(root string) []string {
	return slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool { return below(root, dir) })
}

// Use is a program of a part.
type Use struct {
	Part    Part
	Program Program // with the checksum of the file as it is
}

// Uses returns the programs of the store among the paths of programs, each once.
func Uses(programs []string) ([]Use, error) {
	root, rootErr := Root() // with an error Prepend has found no store either
	var uses []Use
	for _, program := range slices.Compact(slices.Sorted(slices.Values(programs))) {
		names := strings.Split(strings.TrimPrefix(program, root+"/"), "/")
		if rootErr != nil || !below(root, program) || len(names) != 4 {
			continue
		}
		part, err := Read(filepath.Join(root, names[0], names[1]))
		if err != nil {
			return nil, err
		}
		sum, err := Digest(program)
		if err != nil {
			return nil, err
		}
		uses = append(uses, Use{part, Program{names[3], sum}})
	}
	return uses, nil
}

// Digest returns the SHA-256 of a file in hexadecimal digits.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it is only read from
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func below(root, path string) bool { return strings.HasPrefix(filepath.Clean(path), root+"/") }

// number is a sequence of digits in a version.
var number = regexp.MustCompile(`\d+`)

// Compare compares two versions by their numbers, from the left. It ignores everything else: the versions of one project have one form.
func Compare(a, b string) int {
	return slices.CompareFunc(number.FindAllString(a, -1), number.FindAllString(b, -1), func(x, y string) int {
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
}
