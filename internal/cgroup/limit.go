package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
)

// Limits are upper bounds for all processes of a group together. Limit does not change the limit for a zero field.
type Limits struct {
	// CPU is in CPUs: 0.1 is a tenth of one CPU's time.
	CPU float64
	// Memory is in bytes. Groups have no swap, see [Hierarchy.Create].
	Memory int64
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
	if math.IsNaN(l.CPU) || l.CPU < 0 || l.Memory < 0 {
		return fmt.Errorf("%v CPUs, %d bytes: limits must not be negative", l.CPU, l.Memory)
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
	return errors.Join(errs...)
}

func (g *Group) limitCPU(cpus float64) error {
	q := math.Round(cpus * period)
	if q < minQuota || q > math.MaxInt32 {
		return fmt.Errorf("%v CPUs: the kernel accepts limits from %v to %d CPUs", cpus, float64(minQuota)/period, math.MaxInt32/period)
	}
	quota, all := strconv.Itoa(int(q)), strconv.Itoa(period)
	return g.set("cpu",
		setting{"cpu.max", quota + " " + all},
		setting{"cpu.cfs_period_us", all}, setting{"cpu.cfs_quota_us", quota},
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
