package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Memory returns the memory that is charged to the group now, in bytes, with page cache and kernel memory. Its precision is some hundred
// KiB, because the kernel charges in batches per CPU. A removed group has no memory. The error is errors.ErrUnsupported
// without the memory controller. (v2: memory.current, v1: memory.usage_in_bytes.)
func (g *Group) Memory() (int64, error) {
	n, ok, err := g.charge()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err == nil && !ok:
		err = fmt.Errorf("the controller memory is missing, or is not enabled for it: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return 0, fmt.Errorf("read the memory of cgroup %q: %w", g.path, err)
	}
	return n, nil
}

func (g *Group) charge() (bytes int64, ok bool, err error) {
	return g.present("memory", "memory.current", "memory.usage_in_bytes")
}

// present reads the present value of a controller from its file on v2 or v1. ok is false without the controller, and if it is not enabled
// for the group. The error is fs.ErrNotExist if the group does not exist.
func (g *Group) present(controller, unified, older string) (n int64, ok bool, err error) {
	dir, v2, ok := g.dir(controller)
	if !ok {
		return 0, false, nil
	}
	file := older
	if v2 {
		file = unified
	}
	n, err = readInt(dir, file)
	switch {
	case !gone(err):
		return n, true, err
	case exists(dir, "cgroup.procs"):
		return 0, false, nil
	}
	return 0, false, fs.ErrNotExist
}

// CPU returns the CPU time of Usage without its memory. The error is fs.ErrNotExist if the group does not exist.
func (g *Group) CPU() (time.Duration, error) {
	cpu, err := g.cpuTime()
	if gone(err) {
		err = fs.ErrNotExist // the kernel has several errors for a group that is being removed
	}
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of cgroup %q: %w", g.path, err)
	}
	return cpu, nil
}

// AccountedProcs is Procs for frequent calls. It visits one hierarchy only, which accounts for CPU time or memory: a process that has
// joined only other hierarchies is missing.
func (g *Group) AccountedProcs() ([]int, error) {
	dir, ok := g.unified()
	for _, controller := range []string{"memory", "cpuacct"} {
		if found, v2, has := g.dir(controller); has && !v2 {
			dir, ok = found, true
			break
		}
	}
	if !ok {
		return nil, nil
	}
	pids, err := procsBelow(dir)
	if err != nil {
		return nil, fmt.Errorf("list the processes of cgroup %q: %w", g.path, err)
	}
	return pids, nil
}
