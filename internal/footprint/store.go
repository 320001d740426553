package footprint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// store is a database of packages.
type store struct {
	manager string
	// units are the installed packages.
	units []*unit
	// named are the packages by name, provided the packages by the names that they provide.
	named, provided map[string][]*unit
	// newer compares two versions, like cmp.Compare; nil for a manager whose dependencies need no check of versions.
	newer func(a, b string) (int, error)
	// lister lists the files of packages.
	lister
	// index reads the packages that could be installed; nil if the host has no index.
	index func(tree) ([]*unit, error)
	// noRecommends is the reason why recommended packages are unknown.
	noRecommends string
	notes        []string
}

// lister lists the files of packages.
type lister interface {
	// owners returns the packages of files, which have no links in their paths. Files of no package are absent.
	owners(t tree, files map[string]bool) (map[string]*unit, error)
	// list returns the paths of a package's files. The error is fs.ErrNotExist if the list is missing.
	list(t tree, u *unit) ([]string, error)
}

// unit is a package.
type unit struct {
	name, version string
	arch          string // of dpkg
	// estimate is the size that the package itself declares, in bytes.
	estimate  int64
	installed bool
	// base is set for a package that every installation has.
	base                bool
	provides            []atom
	depends, recommends []relation
	// paths are the files, if the database itself has them.
	paths []string

	size    *Sum
	guessed bool // the size is the estimate
}

// relation is a need of a package: one of the alternatives satisfies it.
type relation []atom

func (r relation) String() string {
	var names []string
	for _, a := range r {
		names = append(names, a.name)
	}
	return strings.Join(names, " | ")
}

// anyVersion returns the relation without its conditions.
func (r relation) anyVersion() relation {
	names := slices.Clone(r)
	for i := range names {
		names[i].op = ""
	}
	return names
}

// atom is the name of a package or of something that a package provides, with a condition for its version. Without a condition
// op is empty. The operators are <<, <=, =, >= and >>.
type atom struct{ name, op, version string }

// open reads the database of the manager that the host has.
func open(t tree, scratch string) (*store, error) {
	for _, m := range []struct {
		file string
		read func(tree) (*store, error)
	}{{dpkgStatus, openDpkg}, {apkInstalled, openAPK}} {
		if t.has(m.file) {
			return m.read(t)
		}
	}
	for _, file := range rpmFiles {
		if t.has(file) {
			return openRPM(t, file, scratch)
		}
	}
	return newStore("", nil, nothing{}), nil
}

// newStore makes a store of packages, which it sorts by name.
func newStore(manager string, units []*unit, l lister) *store {
	s := &store{manager: manager, lister: l, named: map[string][]*unit{}, provided: map[string][]*unit{}}
	slices.SortFunc(units, func(a, b *unit) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.version, b.version))
	})
	s.units = units
	s.enter(units)
	s.enterFiles()
	return s
}

// enterFiles makes packages known by the paths of files that other packages need.
func (s *store) enterFiles() {
	requirements := map[string]bool{}
	for _, u := range s.units {
		for _, r := range u.depends {
			for _, a := range r {
				if strings.HasPrefix(a.name, "/") {
					requirements[a.name] = true
				}
			}
		}
	}
	for _, u := range s.units {
		for _, p := range u.paths {
			if requirements[p] {
				u.provides = append(u.provides, atom{name: p})
				s.provided[p] = append(s.provided[p], u)
			}
		}
	}
}

// enter makes packages known by their names.
func (s *store) enter(units []*unit) {
	for _, u := range units {
		s.named[u.name] = append(s.named[u.name], u)
		for _, p := range u.provides {
			s.provided[p.name] = append(s.provided[p.name], u)
		}
	}
}

// withIndex returns a store that also knows the packages that could be installed. The index is large, so it is not kept.
func (s *store) withIndex(t tree) (*store, error) {
	if s.index == nil {
		return s, nil
	}
	units, err := s.index(t)
	if err != nil {
		return nil, err
	}
	superset := *s
	superset.named, superset.provided = maps.Clone(s.named), maps.Clone(s.provided)
	superset.enter(units)
	return &superset, nil
}

// closure returns the packages with everything that they need, and with recommends also everything that they recommend. Like
// apt, it takes the first alternative that is installed, else the first that could be. It also returns the needs
// that no known package satisfies. Cycles are no problem: each package is visited once.
func (s *store) closure(seeds []*unit, recommends bool) (units map[*unit]bool, gaps []string) {
	units = map[*unit]bool{}
	queue := slices.Clone(seeds)
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		if units[u] {
			continue
		}
		units[u] = true
		needs := u.depends
		if recommends {
			needs = slices.Concat(needs, u.recommends)
		}
		for _, r := range needs {
			found := s.find(r)
			if found == nil {
				// A package of the index can need a newer version than the installed one, which then counts in its place.
				found = s.find(r.anyVersion())
			}
			if found == nil {
				gaps = append(gaps, r.String())
				continue
			}
			queue = append(queue, found)
		}
	}
	slices.Sort(gaps)
	return units, slices.Compact(gaps)
}

// find returns the package that satisfies a relation, or nil.
func (s *store) find(r relation) *unit {
	for _, isInstalled := range []bool{true, false} {
		for _, a := range r {
			for _, u := range s.named[a.name] {
				if u.installed == isInstalled && s.holds(u.version, a) {
					return u
				}
			}
			for _, u := range s.provided[a.name] {
				if u.installed == isInstalled && slices.ContainsFunc(u.provides, func(p atom) bool {
					// A provided name without a version satisfies no condition (Debian policy 7.5).
					return p.name == a.name && (a.op == "" || p.version != "" && s.holds(p.version, a))
				}) {
					return u
				}
			}
		}
	}
	return nil
}

// holds reports whether a version satisfies a condition. A malformed version satisfies it: the manager has accepted it.
func (s *store) holds(version string, a atom) bool {
	if a.op == "" || s.newer == nil {
		return true
	}
	c, err := s.newer(version, a.version)
	if err != nil {
		return true
	}
	switch a.op {
	case "<<":
		return c < 0
	case "<=":
		return c <= 0
	case "=":
		return c == 0
	case ">=":
		return c >= 0
	case ">>":
		return c > 0
	}
	return true
}

// withoutPrograms returns the packages that the host needs without the programs in owners: see Footprint.Added. closure is the
// closure of owners.
func (s *store) withoutPrograms(owners []*unit, closure map[*unit]bool) map[*unit]bool {
	needers := map[*unit][]*unit{}
	for _, u := range s.units {
		for _, r := range u.depends {
			if provider := s.find(r); provider != nil {
				needers[provider] = append(needers[provider], u)
			}
		}
	}
	dependents := map[*unit]bool{} // packages that need the programs
	for queue := slices.Clone(owners); len(queue) > 0; queue = queue[1:] {
		if u := queue[0]; !dependents[u] {
			dependents[u] = true
			queue = append(queue, needers[u]...)
		}
	}
	var roots []*unit
	for _, u := range s.units {
		if !dependents[u] && (u.base || !closure[u]) {
			roots = append(roots, u)
		}
	}
	host, _ := s.closure(roots, false)
	return host
}

// measure returns the size of a package.
func (s *store) measure(t tree, u *unit) (Sum, error) {
	if u.size != nil {
		return *u.size, nil
	}
	sum := Sum{Bytes: u.estimate, Packages: 1}
	if !u.installed {
		return sum, nil
	}
	paths, err := s.list(t, u)
	switch {
	case missing(err):
		u.guessed = true
	case err != nil:
		return Sum{}, fmt.Errorf("list the files of %s: %w", u.name, err)
	default:
		var c counter
		for _, p := range paths {
			if err := c.add(t, p); err != nil {
				return Sum{}, err
			}
		}
		sum.Bytes, sum.Files = c.Bytes, c.Files
	}
	u.size = &sum
	return sum, nil
}

// nothing is a host without a known manager of packages.
type nothing struct{}

func (nothing) owners(tree, map[string]bool) (map[string]*unit, error) { return nil, nil }
func (nothing) list(tree, *unit) ([]string, error)                     { return nil, nil }

// recorded lists the files of packages whose database has them.
type recorded struct{ units []*unit }

func (r recorded) owners(t tree, files map[string]bool) (map[string]*unit, error) {
	names := newNames(t, files)
	for _, u := range r.units {
		for _, p := range u.paths {
			names.note(p, u)
		}
	}
	return names.found, nil
}

func (recorded) list(_ tree, u *unit) ([]string, error) { return u.paths, nil }

// names finds the owners of files among the paths of packages, which may have links in their directories, such as /bin.
type names struct {
	files tree
	base  map[string]bool   // of the wanted files
	want  map[string]bool   // the wanted files
	dirs  map[string]string // directories without links
	found map[string]*unit
}

func newNames(t tree, files map[string]bool) *names {
	n := &names{files: t, base: map[string]bool{}, want: files, dirs: map[string]string{}, found: map[string]*unit{}}
	for file := range files {
		n.base[file[strings.LastIndexByte(file, '/')+1:]] = true
	}
	return n
}

// note notes that a package has a path. The first package with a file owns it.
func (n *names) note(file string, u *unit) {
	slash := strings.LastIndexByte(file, '/')
	if !n.base[file[slash+1:]] {
		return
	}
	dir, ok := n.dirs[file[:slash+1]]
	if !ok {
		var err error
		if dir, err = n.files.resolve(file[:slash+1]); err != nil {
			dir = ""
		}
		n.dirs[file[:slash+1]] = dir
	}
	location := strings.TrimSuffix(dir, "/") + file[slash:]
	if dir != "" && n.want[location] && n.found[location] == nil {
		n.found[location] = u
	}
}

// unreadable wraps the error of a database.
func unreadable(manager string, err error) error {
	return &UnreadableError{Manager: manager, Err: err, Advice: "wait until " + manager + " has finished, or repair its database"}
}

// errCutOff reports a database without its end.
var errCutOff = errors.New("the database is cut off")
