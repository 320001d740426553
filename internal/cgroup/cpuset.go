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

// SetCPUs keeps the processes of the group and of all below it on these CPUs, spelled as the kernel does: "0-3,6". The
// group must be there.
//
// On v1, where Create makes no group in the hierarchy of cpuset, it makes this one there, with all CPUs and memory nodes for
// the parents that it lacks, and join is the file by which a process comes into it. In the unified tree join is empty:
// who is in the group is in its cpuset. Without the controller the error is errors.ErrUnsupported.
func (g *Group) SetCPUs(cpus string) (join string, err error) {
	m, ok := g.h.Controller("cpuset")
	if !ok {
		return "", fmt.Errorf("keep cgroup %q on CPUs %s: the host has no controller cpuset: %w", g.path, cpus, errors.ErrUnsupported)
	}
	dir := filepath.Join(m.Dir, g.path)
	err = g.PassCPUs()
	if m.V2 {
		if exists(dir, "") && !exists(dir, "cpuset.cpus") {
			err = fmt.Errorf("the controller cpuset is not passed on to this group: %w", errors.ErrUnsupported)
		}
	} else {
		err = errors.Join(err, makeCPUSet(dir))
		join = filepath.Join(dir, "cgroup.procs")
	}
	if err == nil {
		err = write(dir, "cpuset.cpus", cpus)
	}
	if err != nil {
		return "", fmt.Errorf("keep cgroup %q on CPUs %s: %w", g.path, cpus, err)
	}
	return join, nil
}

// PassCPUs has the groups above this one, which need not be there, pass on to it the CPUs that they have, so that
// whoever makes it can choose among them. Without the controller it does nothing.
func (g *Group) PassCPUs() (err error) {
	m, ok := g.h.Controller("cpuset")
	if !ok {
		return nil
	}
	g.above(m, func(dir string) {
		if m.V2 {
			_ = write(dir, "cgroup.subtree_control", "+cpuset") // what is refused shows when CPUs are chosen
			return
		}
		err = errors.Join(err, makeCPUSet(dir))
	})
	return err
}

// above calls f for the directories of the groups that hold g, from the base down.
func (g *Group) above(m Mount, f func(dir string)) {
	dir := filepath.Join(m.Dir, g.h.base)
	f(dir)
	below, _ := filepath.Rel(path.Join("/", g.h.base), g.path) // a group is below the base
	for _, name := range strings.Split(filepath.Dir(below), "/") {
		if name == "." {
			return
		}
		dir = filepath.Join(dir, name)
		f(dir)
	}
}

// makeCPUSet makes a v1 cpuset unless it is there, and gives it all that its parent has if it has nothing: it refuses
// processes and children until then.
func makeCPUSet(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		if has, err := words(dir, file); err != nil || len(has) > 0 {
			if err != nil {
				return err
			}
			continue
		}
		given, err := words(filepath.Dir(dir), file)
		if err == nil {
			err = write(dir, file, strings.Join(given, ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
