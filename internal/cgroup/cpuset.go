package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// SetCPUs restricts the processes of the group and of all groups below it to these CPUs, in the kernel's format: "0-3,6". The
// group must exist.
//
// On v1 Create does not create the group in the cpuset hierarchy. SetCPUs does, gives all CPUs and memory nodes to the parents
// that it creates, and returns its cgroup.procs file in join: a process must join the cpuset separately. In the unified tree join is
// empty, because a process of the group is in its cpuset. Without the controller the error is errors.ErrUnsupported.
func (g *Group) SetCPUs(cpus string) (join string, err error) {
	m, ok := g.h.Controller("cpuset")
	if !ok {
		return "", fmt.Errorf("restrict cgroup %q to CPUs %s: the host has no controller cpuset: %w", g.path, cpus, errors.ErrUnsupported)
	}
	dir := filepath.Join(m.Dir, g.path)
	err = g.PassCPUs()
	if m.V2 {
		if exists(dir, "") && !exists(dir, "cpuset.cpus") {
			err = fmt.Errorf("the controller cpuset is not enabled for this group: %w", errors.ErrUnsupported)
		}
	} else {
		err = errors.Join(err, makeCPUSet(dir))
		join = filepath.Join(dir, "cgroup.procs")
	}
	if err == nil {
		err = write(dir, "cpuset.cpus", cpus)
	}
	if err != nil {
		return "", fmt.Errorf("restrict cgroup %q to CPUs %s: %w", g.path, cpus, err)
	}
	return join, nil
}

// PassCPUs makes the parents of this group pass their CPUs on to it, so that a runtime that creates the group can choose among them.
// It creates missing parents on v1. Without the controller it does nothing.
func (g *Group) PassCPUs() (err error) {
	m, ok := g.h.Controller("cpuset")
	if !ok {
		return nil
	}
	g.above(m, func(dir string) {
		if m.V2 {
			_ = write(dir, "cgroup.subtree_control", "+cpuset") // an error shows up when cpuset.cpus is written
			return
		}
		err = errors.Join(err, makeCPUSet(dir))
	})
	return err
}

// above calls f for the directories of the group's parents, from the base down.
func (g *Group) above(m Mount, f func(dir string)) {
	dir := filepath.Join(m.Dir, g.h.base)
	f(dir)
	below, _ := filepath.Rel(path.Join("/", g.h.base), g.path) // cannot fail: a group is below the base
	for _, name := range strings.Split(filepath.Dir(below), "/") {
		if name == "." {
			return
		}
		dir = filepath.Join(dir, name)
		f(dir)
	}
}

// makeCPUSet creates a v1 cpuset unless it exists. If the cpuset is empty, makeCPUSet gives it all CPUs and memory nodes of its parent,
// because an empty one refuses processes and children.
func makeCPUSet(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		value, err := words(dir, file)
		if err == nil && len(value) == 0 {
			if value, err = words(filepath.Dir(dir), file); err == nil {
				err = write(dir, file, strings.Join(value, ""))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
