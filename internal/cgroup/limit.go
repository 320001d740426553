package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits are upper bounds for all processes of a group together. Limit does not change the limit for a zero field.
type Limits struct {
	// CPU is in CPUs: 0.1 is a tenth of one CPU's time.
	CPU float64
	// Memory is in bytes. Groups have no swap, see [Hierarchy.Create].
	Memory int64
	// PIDs is the number of processes and threads.
	PIDs int64
}

// period is the accounting period of CPU limits in microseconds. The kernel and OCI runtimes have the same default.
const period = 100_000

// minQuota is the smallest CPU quota that the kernel accepts, in microseconds.
const minQuota = 1_000

// Limit sets limits for the group and all groups below it, at any time. It fails with errors.ErrUnsupported if a controller is
// missing, see [Group.Missing], and with fs.ErrNotExist if the group does not exist.
func (g *Group) Limit(l Limits) error {
	if err := g.limit(l); err != nil {
		return fmt.Errorf("limit cgroup %q: %w", g.path, err)
	}
	return nil
}

func (g *Group) limit(l Limits) error {
	if math.IsNaN(l.CPU) || l.CPU < 0 || l.Memory < 0 || l.PIDs < 0 {
		return fmt.Errorf("%v CPUs, %d bytes, %d processes: limits must not be negative", l.CPU, l.Memory, l.PIDs)
	}
	dirs := g.dirs()
	if len(dirs) > 0 && !slices.ContainsFunc(dirs, func(dir string) bool { return exists(dir, "") }) {
		return fs.ErrNotExist
	}
	var errs []error
	if l.CPU > 0 {
		errs = append(errs, g.limitCPU(l.CPU))
	}
	if l.Memory > 0 {
		limit := strconv.FormatInt(l.Memory, 10)
		errs = append(errs, g.set("memory", setting{"memory.max", limit}, setting{"memory.limit_in_bytes", limit}))
	}
	if l.PIDs > 0 {
		maximum := setting{"pids.max", strconv.FormatInt(l.PIDs, 10)}
		errs = append(errs, g.set("pids", maximum, maximum))
	}
	return errors.Join(errs...)
}

func (g *Group) limitCPU(cpus float64) error {
	q := math.Round(cpus * period)
	if q < minQuota || q > math.MaxInt32 {
		return fmt.Errorf("%v CPUs: the kernel accepts limits from %v to %d CPUs", cpus, float64(minQuota)/period, math.MaxInt32/period)
	}
	quota, periodText := strconv.Itoa(int(q)), strconv.Itoa(period)
	return g.set("cpu",
		setting{"cpu.max", quota + " " + periodText},
		setting{"cpu.cfs_period_us", periodText}, setting{"cpu.cfs_quota_us", quota},
	)
}

// setting is a value for a control file.
type setting struct{ file, value string }

// set writes the setting for the unified tree or the settings for v1, in the hierarchy of a controller.
func (g *Group) set(controller string, unified setting, v1 ...setting) error {
	dir, v2, ok := g.dir(controller)
	if !ok {
		return fmt.Errorf("the host has no controller %s: %w", controller, errors.ErrUnsupported)
	}
	if v2 {
		v1 = []setting{unified}
	}
	// A kernel can lack CPU quotas, and a parent in the unified tree may not enable the controller.
	if last := v1[len(v1)-1]; !exists(dir, last.file) {
		return fmt.Errorf("the controller %s has no %s for this group: %w", controller, last.file, errors.ErrUnsupported)
	}
	for _, s := range v1 {
		if err := write(dir, s.file, s.value); err != nil {
			return err
		}
	}
	return nil
}

// denySwap keeps a new group and all groups below it from swapping at a memory limit. Otherwise the meaning of a limit would depend on the
// engine, and a program that is killed on one host would continue on a host with swap.
//
// The limits in a container's configuration cannot do this, because runtimes differ: youki ignores a swap limit of 0 in the unified tree,
// and runsc raises memory and swap on v1 in an order that the kernel refuses. Many v1 hosts have no memory.memsw. But groups
// inherit a swappiness of 0, and then the kernel does not swap their memory out because of a limit.
func denySwap(m Mount, dir string) error {
	if !m.has("memory") {
		return nil
	}
	file := "memory.swappiness"
	if m.V2 {
		file = "memory.swap.max"
	}
	if err := write(dir, file, "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

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
		if err == nil && exists(dir, "") && !exists(dir, "cpuset.cpus") {
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
// It creates missing parents on v1. Without the controller it does nothing. If a parent in the unified tree does not pass it on, the error is
// errors.ErrUnsupported with the reason.
func (g *Group) PassCPUs() (err error) {
	m, ok := g.h.Controller("cpuset")
	if !ok {
		return nil
	}
	g.above(m, func(dir string) {
		if m.V2 {
			if r := pass(dir, "cpuset"); r != nil && err == nil { // the groups below have the same reason
				err = fmt.Errorf("%w: %w", r, errors.ErrUnsupported)
			}
			return
		}
		err = errors.Join(err, makeCPUSet(dir))
	})
	return err
}

// above calls f for the directories of the group's parents, from the base down.
func (g *Group) above(m Mount, f func(dir string)) {
	base := strings.TrimSuffix(g.h.base, "/")
	for i, c := range g.path {
		if c == '/' && i >= len(base) {
			f(filepath.Join(m.Dir, g.path[:i]))
		}
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
