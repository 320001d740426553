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

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// errNoAccess is the error of Create if this process may not create groups.
func errNoAccess(name string, cause error) error {
	return fmt.Errorf("create cgroup %q: %w; %s", name, cause, refusal.Rights("run as root, or as a user in a cgroup v2 group of one's own "+
		"(systemd-run --user --scope --property=Delegate=yes …)"))
}

// Group is one control group, the same path in all hierarchies. Its methods may be
// called from several goroutines.
type Group struct {
	h    *Hierarchy
	path string // from the root of the hierarchies
	// refused are the controllers that a parent refused to pass on when Create made the group.
	refused map[string]*refusal.Error
}

// Create creates a group at an absolute path below [Hierarchy.Base], with missing parents, in every hierarchy that processes
// join. It fails with fs.ErrExist if the group exists, because its counters include earlier work. After an error nothing is left.
//
// In the unified tree Create enables the controllers cpu, memory and pids in the root and in all parents without processes.
// They stay enabled in the root after the group is removed, because others may depend on them by then. An unavailable
// controller is not an error: [Group.Missing] lists it, and [Group.Refusal] has the reason.
//
// A new group and all groups below it have no swap if the kernel can deny it. So a memory limit includes swap on every
// engine.
//
// In the unified tree a group that enables controllers for its children cannot hold processes. Put processes only into groups without
// children.
func (h *Hierarchy) Create(name string) (*Group, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	if h.base == "" {
		return nil, errNoAccess(name, h.noAccess)
	}
	g := &Group{h: h, path: path.Join(h.base, name), refused: map[string]*refusal.Error{}}
	var paths []string
	for _, m := range h.Mounts {
		if !m.joined() {
			continue
		}
		dirs, err := g.createIn(m, name)
		paths = append(paths, dirs...)
		if err == nil {
			continue
		}
		for _, dir := range slices.Backward(paths) {
			err = errors.Join(err, os.Remove(dir))
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, errNoAccess(g.path, err)
		}
		return nil, fmt.Errorf("create cgroup %q: %w", g.path, err)
	}
	return g, nil
}

// createIn creates the directories of a group in one hierarchy, and returns the new ones.
func (g *Group) createIn(m Mount, name string) (paths []string, err error) {
	names := strings.Split(strings.TrimPrefix(name, "/"), "/")
	dir := filepath.Join(m.Dir, g.h.base)
	for i, name := range names {
		if m.V2 {
			g.passEnabled(m, dir)
		}
		dir = filepath.Join(dir, name)
		switch err := os.Mkdir(dir, 0o755); {
		case err == nil:
			paths = append(paths, dir)
			if err := denySwap(m, dir); err != nil {
				return paths, err
			}
		case !errors.Is(err, fs.ErrExist) || i == len(names)-1:
			return paths, err
		}
		if err := makeHierarchical(m, dir); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

// passEnabled makes a parent of the group pass the controllers on. It writes one controller at a time, so that the kernel can refuse one and
// accept the others. The first parent that refuses a controller has the reason.
func (g *Group) passEnabled(m Mount, dir string) {
	for _, name := range enabled {
		if !m.has(name) || g.refused[name] != nil {
			continue
		}
		if r := pass(dir, name); r != nil {
			g.refused[name] = r
		}
	}
}

// makeHierarchical makes a v1 memory group include the memory of its children. Kernels since 5.11 always do this. Earlier kernels
// inherit the setting of the root, which may be off.
func makeHierarchical(m Mount, dir string) error {
	if m.V2 || !m.has("memory") {
		return nil
	}
	if value, err := words(dir, "memory.use_hierarchy"); err == nil && slices.Equal(value, []string{"0"}) {
		return write(dir, "memory.use_hierarchy", "1")
	}
	return nil
}

// Open returns the group at an absolute path below [Hierarchy.Base], whether it exists or not. Use it to kill and remove the
// remains of an earlier run.
func (h *Hierarchy) Open(name string) (*Group, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	return &Group{h: h, path: path.Join("/", h.base, name)}, nil
}

// checkPath refuses every path that could lead to a group that Touchstone did not create.
func checkPath(name string) error {
	switch {
	case !strings.HasPrefix(name, "/"+Prefix):
		return fmt.Errorf("cgroup path %q: it must begin with /%s", name, Prefix)
	case path.Clean(name) != name:
		return fmt.Errorf("cgroup path %q: it must not contain an empty, . or .. component", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("cgroup path %q: it must not contain control characters", name)
	}
	return nil
}

// Path returns the absolute path of the group. It is a valid cgroupsPath for an OCI runtime.
func (g *Group) Path() string { return g.path }

// dirs returns the directories of the group in the hierarchies that processes join.
func (g *Group) dirs() []string { return g.files(Mount.joined, "") }

// allDirs returns the directories of the group in all hierarchies.
func (g *Group) allDirs() []string { return g.files(func(Mount) bool { return true }, "") }

// files returns the paths of a control file in the hierarchies that want accepts.
func (g *Group) files(want func(Mount) bool, file string) []string {
	var files []string
	for _, m := range g.h.Mounts {
		if want(m) {
			files = append(files, filepath.Join(m.Dir, g.path, file))
		}
	}
	return files
}

// dir returns the directory of the group in the hierarchy of a controller.
func (g *Group) dir(controller string) (dir string, v2, ok bool) {
	m, ok := g.h.Controller(controller)
	return filepath.Join(m.Dir, g.path), m.V2, ok
}

// unified returns the directory of the group in the unified tree.
func (g *Group) unified() (dir string, ok bool) {
	m, ok := g.h.unified()
	return filepath.Join(m.Dir, g.path), ok
}

// ProcsFiles returns the cgroup.procs files. A process writes its own ID, or 0, to each of them to join the group with all its
// threads.
func (g *Group) ProcsFiles() []string {
	return g.files(Mount.joined, "cgroup.procs")
}

// ThreadFiles returns the v1 tasks files. A single thread writes its own ID, or 0, to each of them to join the group, so that
// its children start there. The unified tree does not support this; use OpenDir there. Before the group can be removed, the thread must
// join another group in the same way.
func (g *Group) ThreadFiles() []string {
	return g.files(func(m Mount) bool { return !m.V2 && m.joined() }, "tasks")
}

// OpenDir opens the group's directory in the unified tree. clone3 with CLONE_INTO_CGROUP (SysProcAttr.CgroupFD) takes the
// descriptor. Without a unified tree the error is errors.ErrUnsupported.
func (g *Group) OpenDir() (*os.File, error) {
	dir, ok := g.unified()
	if !ok {
		return nil, fmt.Errorf("open cgroup %q in the unified tree: the host has none: %w", g.path, errors.ErrUnsupported)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open cgroup %q: %w", g.path, err)
	}
	return f, nil
}

// Missing lists the controllers among cpu, memory and pids that are not enabled for the group, in alphabetical order. Their limits
// cannot be set, and without memory the peak is unknown. In the unified tree the CPU time needs no controller.
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

// write writes a value to an existing control file.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
