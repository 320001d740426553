package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// ErrNoAccess is what an *AccessError wraps.
var ErrNoAccess = errors.New("no access to cgroups")

// AccessError says that groups cannot be made here, and what is missing.
type AccessError struct {
	Path  string // the group that was to be made
	Cause error  // what the system said
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("create cgroup %q: %v; run as root, or as a user in a cgroup v2 group of one's own "+
		"(systemd-run --user --scope --property=Delegate=yes …)", e.Path, e.Cause)
}

// Unwrap lets errors.Is find both ErrNoAccess and the cause.
func (e *AccessError) Unwrap() []error { return []error{ErrNoAccess, e.Cause} }

// Group is one control group, the same path in all hierarchies. Its methods may be
// called from several goroutines.
type Group struct {
	h    *Hierarchy
	path string // from the root of the hierarchies
}

// Create makes a group at an absolute path below [Hierarchy.Base], with the parents
// it lacks, in every hierarchy that processes join. It fails with fs.ErrExist if
// the group is there already, as its counters would tell of something else, and
// with an *AccessError where this process may not make groups. If it fails nothing
// is left.
//
// In the unified tree it switches the controllers cpu, memory and pids on in all
// parents that hold no processes, and in the root. What is switched on in the root stays on when the
// group goes, because others may rely on it by then. A controller that cannot
// be had is no error: [Group.Missing] names it.
//
// A new group and all below it have no swap where the kernel can deny it: a limit of memory is one of memory
// and swap, whatever an engine asks for.
//
// In the unified tree a group that passes controllers on can hold no
// processes: put processes only into groups without children.
func (h *Hierarchy) Create(name string) (*Group, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	if h.base == "" {
		return nil, &AccessError{Path: name, Cause: h.noAccess}
	}
	g := &Group{h: h, path: path.Join(h.base, name)}
	var made []string
	for _, m := range h.Mounts {
		if !m.joined() {
			continue
		}
		dirs, err := h.createIn(m, name)
		made = append(made, dirs...)
		if err == nil {
			continue
		}
		for _, dir := range slices.Backward(made) {
			err = errors.Join(err, os.Remove(dir))
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, &AccessError{Path: g.path, Cause: err}
		}
		return nil, fmt.Errorf("create cgroup %q: %w", g.path, err)
	}
	return g, nil
}

// createIn makes the directories of a group in one hierarchy and gives those it made.
func (h *Hierarchy) createIn(m Mount, name string) (made []string, err error) {
	names := strings.Split(strings.TrimPrefix(name, "/"), "/")
	dir := filepath.Join(m.Dir, h.base)
	for i, name := range names {
		if m.V2 {
			enable(dir)
		}
		dir = filepath.Join(dir, name)
		switch err := os.Mkdir(dir, 0o755); {
		case err == nil:
			made = append(made, dir)
			if err := denySwap(m, dir); err != nil {
				return made, err
			}
		case !errors.Is(err, fs.ErrExist) || i == len(names)-1:
			return made, err
		}
		if err := makeHierarchical(m, dir); err != nil {
			return made, err
		}
	}
	return made, nil
}

// enable switches on what groups below dir need. It goes one controller at a time so
// that one that is refused does not take the others along; what is refused is for
// Missing to tell.
//
// A group with processes of its own, as a delegated one has at first, is left alone.
// memory it could not pass on, and cpu and pids would make it the root of a threaded subtree: no
// process can join a group below it any more.
func enable(dir string) {
	if procs, _ := words(dir, "cgroup.procs"); len(procs) > 0 && exists(dir, "cgroup.type") {
		return // only the root of the whole tree has no type, and may have both
	}
	available, _ := words(dir, "cgroup.controllers")
	already, _ := words(dir, "cgroup.subtree_control")
	for _, name := range enabled {
		if slices.Contains(available, name) && !slices.Contains(already, name) {
			_ = write(dir, "cgroup.subtree_control", "+"+name)
		}
	}
}

// makeHierarchical lets a v1 memory group count what its children use. Kernels since
// 5.11 always do; before, the root decided for all and may have decided against.
func makeHierarchical(m Mount, dir string) error {
	if m.V2 || !m.has("memory") {
		return nil
	}
	if now, err := words(dir, "memory.use_hierarchy"); err == nil && slices.Equal(now, []string{"0"}) {
		return write(dir, "memory.use_hierarchy", "1")
	}
	return nil
}

// Open gives the group at an absolute path below [Hierarchy.Base], whether
// there is one or not: to end and remove what an earlier run left.
func (h *Hierarchy) Open(name string) (*Group, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	return &Group{h: h, path: path.Join("/", h.base, name)}, nil
}

// checkPath refuses every path that could mean a group which is not ours.
func checkPath(name string) error {
	switch {
	case !strings.HasPrefix(name, "/"+Prefix):
		return fmt.Errorf("cgroup path %q: it must begin with /%s", name, Prefix)
	case path.Clean(name) != name:
		return fmt.Errorf("cgroup path %q: it must hold no empty, . or .. component", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("cgroup path %q: it must hold no control characters", name)
	}
	return nil
}

// Path is the absolute path of the group, what an OCI runtime takes as cgroupsPath.
func (g *Group) Path() string { return g.path }

// dirs gives the directories of the group in the hierarchies that want takes.
func (g *Group) dirs(want func(Mount) bool) []string {
	var dirs []string
	for _, m := range g.h.Mounts {
		if want(m) {
			dirs = append(dirs, filepath.Join(m.Dir, g.path))
		}
	}
	return dirs
}

// dir gives the directory of the group where a controller is.
func (g *Group) dir(controller string) (dir string, v2, ok bool) {
	m, ok := g.h.Controller(controller)
	return filepath.Join(m.Dir, g.path), m.V2, ok
}

// ProcsFiles gives the files into which a process writes its own ID, or 0, to join
// the group with all its threads.
func (g *Group) ProcsFiles() []string {
	return inEach(g.dirs(Mount.joined), "cgroup.procs")
}

// ThreadFiles gives the files into which a thread writes its own ID, or 0, to join
// the v1 part of the group by itself, so that what it forks is born there. The
// unified tree has no such thing for threads of one process; use OpenDir there.
// The thread must leave again, by the same files of another group, before the group
// can be removed.
func (g *Group) ThreadFiles() []string {
	return inEach(g.dirs(func(m Mount) bool { return !m.V2 && m.joined() }), "tasks")
}

func inEach(dirs []string, file string) []string {
	for i := range dirs {
		dirs[i] = filepath.Join(dirs[i], file)
	}
	return dirs
}

// OpenDir opens the group's directory in the unified tree, whose descriptor
// clone3 takes with CLONE_INTO_CGROUP (SysProcAttr.CgroupFD). Without a unified tree
// the error is errors.ErrUnsupported.
func (g *Group) OpenDir() (*os.File, error) {
	m, ok := g.h.unified()
	if !ok {
		return nil, fmt.Errorf("open cgroup %q in the unified tree: the host has none: %w", g.path, errors.ErrUnsupported)
	}
	f, err := os.Open(filepath.Join(m.Dir, g.path))
	if err != nil {
		return nil, fmt.Errorf("open cgroup %q: %w", g.path, err)
	}
	return f, nil
}

// Missing names the controllers among cpu, memory and pids that do not act on the group,
// in alphabetical order: limits of their kind cannot be set, and without
// memory the peak is not known. CPU time is known without any controller in the
// unified tree.
func (g *Group) Missing() []string {
	var missing []string
	for _, name := range enabled {
		dir, v2, ok := g.dir(name)
		if ok && v2 {
			has, _ := words(dir, "cgroup.controllers")
			ok = slices.Contains(has, name)
		}
		if !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// write writes a value into a control file, which it never creates.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
