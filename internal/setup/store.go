package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/filelock"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// The names of a store beside its parts.
const (
	temporaryPrefix = ".new-"
	lockName        = ".lock"
)

// Store returns the store for programs of an architecture. The store of this machine's architecture is the directory itself.
func Store(root, arch, host string) string {
	if arch == host {
		return root
	}
	return filepath.Join(root, "."+arch)
}

func (s *Setup) directory(name, version string) string { return filepath.Join(s.Root, name, version) }

// lock locks the store and removes the leftovers of killed set-ups. It makes the store if it is missing.
func (s *Setup) lock(ctx context.Context) (l filelock.Lock, err error) {
	wait := sync.OnceFunc(s.Wait)
	for {
		if s.Root, err = trust.MakeDirectory(s.Root); err != nil {
			return 0, fmt.Errorf("make the store: %w", err)
		}
		l, err = filelock.Wait(ctx, filepath.Join(s.Root, lockName), filelock.File, filelock.Exclusive, wait)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has removed the store
		}
		if err != nil {
			return 0, err
		}
		if _, err = sweep(s.Root); err != nil {
			l.Release()
		}
		return l, err
	}
}

// Sweep removes the leftovers of killed set-ups from a store, and returns their paths. It leaves a store alone that a set-up is using.
func Sweep(root string) (removals []string, err error) {
	if _, err := trust.Directory(root); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("sweep the store: %w", err)
	}
	l, err := filelock.Try(filepath.Join(root, lockName), filelock.File, filelock.Exclusive)
	switch {
	case errors.Is(err, filelock.ErrLocked), errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer l.Release()
	return sweep(root)
}

// sweep removes temporary directories. The store must be locked.
func sweep(root string) (removals []string, err error) {
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporaryPrefix) {
			continue
		}
		path := filepath.Join(root, e.Name())
		if bad := os.RemoveAll(path); bad != nil {
			err = errors.Join(err, fmt.Errorf("remove a leftover of a killed set-up: %w", bad))
			continue
		}
		removals = append(removals, path)
	}
	return removals, err
}

// Install installs items in order. An installed part stays if a later one fails.
func (s *Setup) Install(ctx context.Context, items []Item) (err error) {
	l, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	for _, item := range items {
		switch {
		case item.Err != nil:
			return item.Err
		case item.System != "":
			continue
		}
		if err := s.install(ctx, item); err != nil {
			return fmt.Errorf("install %s: %w", item.Title(), err)
		}
	}
	return nil
}

// install installs a part, or makes its version current if another set-up has installed it.
func (s *Setup) install(ctx context.Context, item Item) (err error) {
	if item = s.place(item); item.IsInstalled {
		return s.use(item.Name, item.Version)
	}
	if err := s.requireSpace(item); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Root, temporaryPrefix+item.Name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := parts.Part{
		Name: item.Name, Version: item.Version, Licence: item.Licence, Origin: item.Origin, Touchstone: s.Touchstone,
		Dir: filepath.Join(dir, item.Version),
	}
	if err := s.prepare(ctx, dir, item, &part); err != nil {
		return err
	}
	if !s.isForeign() {
		s.Step("running a container with " + item.Title())
		if err := s.Try(ctx, part); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("no container runs with it, so it is not installed: %w", err)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.publish(part, dir)
}

// prepare makes the files of a part in a temporary directory.
func (s *Setup) prepare(ctx context.Context, dir string, item Item, part *parts.Part) error {
	if err := os.MkdirAll(part.Bin(), 0o755); err != nil {
		return err
	}
	w := &work{dir: filepath.Join(dir, "work"), bin: part.Bin(), arch: s.Arch, from: s.From, client: s.Client}
	err := os.MkdirAll(filepath.Join(w.dir, "tmp"), 0o700)
	if err == nil {
		err = s.withLauncher(func(l *process.Launcher) error {
			w.launcher = l
			return item.produce(ctx, w)
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return explainSpace(err, s.Root)
	}
	for _, name := range item.Programs {
		path := filepath.Join(part.Bin(), name)
		sum, err := parts.Digest(path)
		if errors.Is(err, fs.ErrNotExist) && item.Origin.Kind == parts.Package && len(part.Programs) > 0 {
			continue // a package may divide the programs in another way
		}
		if err == nil {
			err = os.Chmod(path, 0o755)
		}
		if err == nil {
			err = checkArch(path, s.Arch)
		}
		if err != nil {
			return fmt.Errorf("the program %s of %s: %w", name, item.Origin.Source, err)
		}
		part.Programs = append(part.Programs, parts.Program{Name: name, SHA256: sum})
	}
	return writeRecord(*part)
}

// writeRecord writes the record of a part, and brings the part to the disk.
func writeRecord(part parts.Part) error {
	text, err := json.MarshalIndent(part, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(part.Dir, parts.Record), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = unix.Syncfs(int(file.Fd()))
	}
	return errors.Join(err, file.Close())
}

// publish renames a complete part to its place, and makes it current.
func (s *Setup) publish(part parts.Part, dir string) error {
	place := s.directory(part.Name, part.Version)
	for _, d := range []string{filepath.Dir(place), part.Dir, part.Bin()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(d, 0o755); err != nil { // the umask may forbid it to others
			return err
		}
	}
	// A damaged version is in the way.
	if err := os.Rename(place, filepath.Join(dir, "damaged")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part.Dir, place); err != nil {
		return err
	}
	return s.use(part.Name, part.Version)
}

// use makes a version current. A rename replaces the link, so that a version is current at all times.
func (s *Setup) use(name, version string) error {
	link := filepath.Join(s.Root, name, parts.Current)
	dir, err := os.MkdirTemp(s.Root, temporaryPrefix+"link-")
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, parts.Current)
	err = os.Symlink(version, draft)
	if err == nil {
		err = os.Rename(draft, link)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// requireSpace returns an error if the store has too little space for an item.
func (s *Setup) requireSpace(item Item) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.Root, &fs); err != nil {
		return fmt.Errorf("find the free space of %s: %w", s.Root, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < item.space {
		return fmt.Errorf("%s has %d MB of free space, and it takes %d MB; free some, or name another directory with %s=DIR",
			s.Root, free>>20, item.space>>20, parts.Variable)
	}
	return nil
}

// explainSpace adds the remedy to an error about a full disk.
func explainSpace(err error, root string) error {
	if errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		return fmt.Errorf("%w; free some space of %s, or name another directory with %s=DIR", err, root, parts.Variable)
	}
	return err
}

// Remove removes parts by NAME, which is all versions, or NAME@VERSION. Without names it removes all parts, and the store if it is then
// empty. It returns the removed parts.
func (s *Setup) Remove(ctx context.Context, names []string) (removals []string, err error) {
	if _, err := os.Lstat(s.Root); errors.Is(err, fs.ErrNotExist) && len(names) == 0 {
		return nil, nil
	}
	l, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	dirs := s.versions()
	titleOf := func(dir string) string { return filepath.Base(filepath.Dir(dir)) + "@" + filepath.Base(dir) }
	isNamed := func(dir, name string) bool { return name == titleOf(dir) || name == filepath.Base(filepath.Dir(dir)) }
	for _, name := range names {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return isNamed(dir, name) }) {
			return nil, fmt.Errorf("%s is not installed; installed are: %s", name, strings.Join(titles(dirs, titleOf), ", "))
		}
	}
	for _, dir := range dirs {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return isNamed(dir, name) }) {
			continue
		}
		if err := s.remove(dir); err != nil {
			return removals, fmt.Errorf("remove %s: %w", titleOf(dir), err)
		}
		removals = append(removals, titleOf(dir))
	}
	if len(names) == 0 {
		return removals, s.removeStore()
	}
	return removals, nil
}

// versions lists the directories of all versions, also of damaged ones. The store may be a directory with other files, which stay.
func (s *Setup) versions() []string {
	var list []string
	dirs, _ := filepath.Glob(filepath.Join(s.Root, "*", "*")) // the pattern is valid
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		_, err := os.Lstat(filepath.Join(dir, parts.Record))
		isKnown := slices.ContainsFunc(s.Recipes, func(r Recipe) bool { return r.Name == name })
		if filepath.Base(dir) != parts.Current && (err == nil || isKnown) {
			list = append(list, dir)
		}
	}
	return list
}

func titles(dirs []string, titleOf func(string) string) []string {
	var list []string
	for _, dir := range dirs {
		list = append(list, titleOf(dir))
	}
	if list == nil {
		return []string{"none"}
	}
	return list
}

// remove removes a version. The rename comes first, so that no half of it stays in use. Then the newest remaining version is current.
func (s *Setup) remove(dir string) error {
	draft, err := os.MkdirTemp(s.Root, temporaryPrefix+"old-")
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	link := filepath.Join(parent, parts.Current)
	if version, err := os.Readlink(link); err == nil && version == filepath.Base(dir) {
		var rest []string
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			if e.Name() != version && e.Name() != parts.Current {
				rest = append(rest, e.Name())
			}
		}
		slices.SortFunc(rest, parts.Compare)
		if len(rest) > 0 {
			err = s.use(filepath.Base(parent), rest[len(rest)-1])
		} else {
			err = os.Remove(link)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(draft))
		}
	}
	err = os.Rename(dir, filepath.Join(draft, "part"))
	err = errors.Join(err, os.RemoveAll(draft))
	if bad := os.Remove(parent); err == nil && bad != nil && !errors.Is(bad, unix.ENOTEMPTY) {
		err = bad
	}
	return err
}

// removeStore removes the stores for other architectures, and the store if nothing else is in it: a user wants no trace.
func (s *Setup) removeStore() error {
	var err error
	for _, arch := range Architectures() {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.Root, "."+arch)))
	}
	err = errors.Join(err, os.Remove(filepath.Join(s.Root, lockName)))
	if bad := os.Remove(s.Root); bad != nil && !errors.Is(bad, unix.ENOTEMPTY) {
		err = errors.Join(err, bad)
	}
	return err
}
