package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Limits are upper bounds for all processes of a group together; a zero field is not touched.
type Limits struct {
	// CPU is in CPUs: 0.1 is a tenth of the time of one.
	CPU float64
	// Memory is in bytes, without swap.
	Memory int64
}

// period is the accounting period of CPU limits in microseconds, the kernel's default and that of
// OCI runtimes.
const period = 100_000

// Limit sets limits, at any time. It fails with errors.ErrUnsupported if there is no controller for
// one; see [Group.Missing].
func (g *Group) Limit(l Limits) error {
	var errs []error
	if l.CPU > 0 {
		quota := strconv.FormatInt(int64(math.Round(l.CPU*period)), 10)
		all := strconv.Itoa(period)
		errs = append(errs, g.set("cpu",
			setting{"cpu.max", quota + " " + all},
			setting{"cpu.cfs_period_us", all}, setting{"cpu.cfs_quota_us", quota},
		))
	}
	if l.Memory > 0 {
		limit := strconv.FormatInt(l.Memory, 10)
		errs = append(errs, g.set("memory", setting{"memory.max", limit}, setting{"memory.limit_in_bytes", limit}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("limit cgroup %q: %w", g.path, err)
	}
	return nil
}

// setting is a value for a control file.
type setting struct{ file, value string }

// set writes the setting of the unified tree, or those of v1, to where a controller is.
func (g *Group) set(controller string, unified setting, v1 ...setting) error {
	dir, v2, ok := g.dir(controller)
	if !ok || v2 && !exists(dir, unified.file) {
		return fmt.Errorf("there is no controller %s: %w", controller, errors.ErrUnsupported)
	}
	if v2 {
		v1 = []setting{unified}
	}
	for _, s := range v1 {
		if err := write(dir, s.file, s.value); err != nil {
			return err
		}
	}
	return nil
}
