package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Enter moves this program into the group. In hierarchies without the group it moves to the root, so that nothing of it stays in the groups of its
// caller.
func (g *Group) Enter() error { return g.h.move(g.path) }

// Leave moves this program from all groups to the roots.
func (h *Hierarchy) Leave() error { return h.move("/") }

func (h *Hierarchy) move(path string) error {
	var errs []error
	for _, m := range h.Mounts {
		dir := m.Dir
		if m.joined() {
			dir = filepath.Join(m.Dir, path)
		}
		if err := write(dir, "cgroup.procs", "0"); err != nil {
			errs = append(errs, fmt.Errorf("move to cgroup %q: %w", path, err))
		}
	}
	return errors.Join(errs...)
}
