// Package footprint computes the space that programs take on the disk of a host: their packages with all dependencies, or
// their files and libraries where no package holds them (sateri, section 3.3.2 and table 4.9).
//
// A package counts with all its files that exist on the host, so documentation that the host leaves out counts nothing.
// The dependencies are followed to their end, like apt-cache depends --recurse. A program outside of packages counts
// with its own file and with the libraries that its headers name; a library that belongs to a package brings that package
// with its dependencies. Libraries that such a program opens while it runs are unknown.
//
// The database of packages is dpkg's, rpm's or apk's. The package refuses a database that is being changed, or that it
// cannot read whole: a footprint with gaps would be too small. It starts no process and changes nothing.
package footprint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Footprint is the space of a set of programs.
type Footprint struct {
	// Manager is the manager of the host's packages; empty if the host has none that is known.
	Manager string
	// Programs are the files of the programs themselves.
	Programs Sum
	// Minimal are the programs with their packages and dependencies.
	Minimal Sum
	// Recommended is Minimal with all recommended packages, and with those that they in turn need and recommend. It is nil
	// if they are unknown.
	Recommended *Sum
	// Added is the part of Minimal that the host would not need without the programs. It leaves out a dependency that is
	// essential or required in every installation, or that another installed package needs. The other package must neither
	// be in Minimal nor need the programs itself. The programs and their own packages always belong to Added.
	Added Sum
	// Packages are the packages of Minimal, the largest first.
	Packages []Package
	// Unpackaged are the programs that belong to no package, and their libraries that belong to none.
	Unpackaged []string
	// Notes are facts that limit the accuracy of the sums.
	Notes []string
}

// Sum is the size of a set of packages and files.
type Sum struct {
	// Bytes is the length of all regular files. A file with several names counts once.
	Bytes int64
	// Packages includes the packages of the programs themselves.
	Packages int
	// Files counts regular files and symbolic links.
	Files int
}

// Package is a package of a footprint.
type Package struct {
	Name, Version string
	Bytes         int64
	Files         int
	// Own is set for a package that holds a program, Added for a package that belongs to Footprint.Added.
	Own, Added bool
}

// UnreadableError reports a database of packages that is being changed, or that cannot be read.
type UnreadableError struct {
	Manager string
	Err     error
	Advice  string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read the packages of %s: %v; %s", e.Manager, e.Err, e.Advice)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Host is a host's packages and files. Its methods may be called from several goroutines. The database is read once, at
// the first call that needs it, so that all footprints of a run refer to the same state.
type Host struct {
	files   tree
	scratch string

	mu    sync.Mutex
	store *store
	err   error
	known map[string]Footprint
}

// NewHost returns the host with its file system at root: "/", or a copy in tests. scratch is a directory for temporary files.
func NewHost(root, scratch string) *Host {
	return &Host{files: tree{root}, scratch: scratch, known: map[string]Footprint{}}
}

// Of returns the footprint of programs, by their absolute paths. Without programs it is zero.
func (h *Host) Of(programs []string) (Footprint, error) {
	if len(programs) == 0 {
		return Footprint{}, nil
	}
	programs = slices.Compact(slices.Sorted(slices.Values(programs)))
	key := strings.Join(programs, "\x00")
	h.mu.Lock()
	defer h.mu.Unlock()
	if f, ok := h.known[key]; ok {
		return f, nil
	}
	if h.store == nil && h.err == nil {
		h.store, h.err = open(h.files, h.scratch)
	}
	if h.err != nil {
		return Footprint{}, h.err
	}
	f, err := h.compute(programs)
	if err != nil {
		return Footprint{}, fmt.Errorf("compute the footprint of %s: %w", strings.Join(programs, ", "), err)
	}
	h.known[key] = f
	return f, nil
}

// compute computes a footprint.
func (h *Host) compute(programs []string) (Footprint, error) {
	owners, leftover, err := h.split(programs)
	if err != nil {
		return Footprint{}, err
	}
	f := Footprint{Manager: h.store.manager, Notes: slices.Clone(h.store.notes), Unpackaged: leftover.sorted()}
	var sum counter
	for _, program := range programs {
		file, err := h.files.resolve(program)
		if err == nil {
			err = sum.add(h.files, file)
		}
		if err != nil {
			return Footprint{}, err
		}
	}
	f.Programs = sum.Sum

	seeds := slices.Concat(owners, leftover.packages)
	minimal, gaps := h.store.closure(seeds, false)
	host := h.store.withoutPrograms(owners, minimal)
	var guessed []string
	for u := range minimal {
		size, err := h.store.measure(h.files, u)
		if err != nil {
			return Footprint{}, err
		}
		p := Package{Name: u.name, Version: u.version, Bytes: size.Bytes, Files: size.Files, Own: slices.Contains(owners, u)}
		p.Added = p.Own || !host[u]
		f.Packages = append(f.Packages, p)
		f.Minimal.add(size)
		if p.Added {
			f.Added.add(size)
		}
		if u.guessed {
			guessed = append(guessed, u.name)
		}
	}
	slices.SortFunc(f.Packages, func(a, b Package) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name)) })
	looseSum, err := leftover.sum(h.files)
	if err != nil {
		return Footprint{}, err
	}
	f.Minimal.add(looseSum)
	f.Added.add(looseSum)
	if err := h.recommended(&f, seeds, looseSum); err != nil {
		return Footprint{}, err
	}
	if len(gaps) > 0 {
		f.Notes = append(f.Notes, "dependencies that are not installed, and count nothing: "+strings.Join(gaps, ", "))
	}
	if len(guessed) > 0 {
		slices.Sort(guessed)
		f.Notes = append(f.Notes, "the lists of files are missing, so the sizes are the packages' own estimates: "+strings.Join(guessed, ", "))
	}
	if len(leftover.files) > 0 {
		f.Notes = append(f.Notes, "libraries opened by dlopen are unknown")
	}
	return f, nil
}

// recommended fills in the footprint with recommended packages.
func (h *Host) recommended(f *Footprint, seeds []*unit, looseSum Sum) error {
	if h.store.noRecommends != "" {
		f.Notes = append(f.Notes, h.store.noRecommends)
		return nil
	}
	index, err := h.store.withIndex(h.files)
	if err != nil {
		return err
	}
	units, gaps := index.closure(seeds, true)
	sum := looseSum
	estimates := 0
	for u := range units {
		size, err := index.measure(h.files, u)
		if err != nil {
			return err
		}
		if !u.installed {
			estimates++
		}
		sum.add(size)
	}
	if len(gaps) > 0 {
		f.Notes = append(f.Notes, "recommended packages that are neither installed nor in an index, and count nothing: "+strings.Join(gaps, ", "))
	}
	if estimates > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("with the recommended packages, %d count with their size in the index", estimates))
	}
	f.Recommended = &sum
	return nil
}

func (s *Sum) add(o Sum) {
	s.Bytes += o.Bytes
	s.Packages += o.Packages
	s.Files += o.Files
}

// split finds the packages of programs, and the files of programs outside of packages.
func (h *Host) split(programs []string) (units []*unit, leftover *loose, err error) {
	files := map[string]bool{}
	for _, p := range programs {
		file, err := h.files.resolve(p)
		if err != nil {
			return nil, nil, fmt.Errorf("find %s: %w", p, err)
		}
		files[file] = true
	}
	owners, err := h.store.owners(h.files, files)
	if err != nil {
		return nil, nil, err
	}
	leftover, err = h.follow(slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(file string) bool { return owners[file] != nil }))
	if err != nil {
		return nil, nil, err
	}
	for _, u := range owners {
		if !slices.Contains(units, u) {
			units = append(units, u)
		}
	}
	return units, leftover, nil
}

// missing reports whether an error means that a file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
