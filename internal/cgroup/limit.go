package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
)

// Limits are upper bounds for all processes of a group together; a zero field is not touched.
type Limits struct {
	// CPU is in CPUs: 0.1 is a tenth of the time of one.
	CPU float64
	// Memory is in bytes. There is no swap beside it: groups have none, see [Hierarchy.Create].
	Memory int64
}

// period is the accounting period of CPU limits in microseconds, the kernel's default and that of
// OCI runtimes.
const period = 100_000

// minQuota is the smallest CPU quota the kernel takes, in microseconds.
const minQuota = 1_000

// Limit sets limits of the group and all below it, at any time. It fails with errors.ErrUnsupported if there is no
// controller for one, see [Group.Missing], and with fs.ErrNotExist if there is no such group.
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
	dirs := g.dirs(Mount.joined)
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
		return fmt.Errorf("%v CPUs: the kernel takes limits from %v CPUs to %d", cpus, float64(minQuota)/period, math.MaxInt32/period)
	}
	quota, all := strconv.Itoa(int(q)), strconv.Itoa(period)
	return g.set("cpu",
		setting{"cpu.max", quota + " " + all},
		setting{"cpu.cfs_period_us", all}, setting{"cpu.cfs_quota_us", quota},
	)
}

// setting is a value for a control file.
type setting struct{ file, value string }

// set writes the setting of the unified tree, or those of v1, to where a controller is.
func (g *Group) set(controller string, unified setting, v1 ...setting) error {
	dir, v2, ok := g.dir(controller)
	if !ok {
		return fmt.Errorf("the host has no controller %s: %w", controller, errors.ErrUnsupported)
	}
	if v2 {
		v1 = []setting{unified}
	}
	// A kernel can be built without CPU quotas, and a unified tree can keep a controller to itself.
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

// denySwap lets a new group and all below it use no swap when they reach a limit of memory: else a limit would mean what each
// engine makes of it, and a host with swap would let through a program that another kills.
//
// It is done here and not by what an engine is asked for, because runtimes differ: youki leaves swap alone in the
// unified tree when it is to be 0, and runsc raises memory and swap on v1 in an order that the kernel refuses. On v1
// memory.memsw is missing from many hosts; groups inherit a swappiness of 0, and then the kernel swaps nothing of theirs out
// for the sake of a limit.
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
