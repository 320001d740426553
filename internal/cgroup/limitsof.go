package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LimitsOf reads the limits of the groups that hold a process, whoever made them. The limits of their parents do not count. A zero
// field is no limit.
func (h *Hierarchy) LimitsOf(pid int) (Limits, error) {
	l, err := h.limitsOf(pid)
	if err != nil {
		return Limits{}, fmt.Errorf("read the limits of process %d: %w", pid, err)
	}
	return l, nil
}

func (h *Hierarchy) limitsOf(pid int) (Limits, error) {
	proc := filepath.Dir(filepath.Dir(h.own)) // of h.own = /proc/self/cgroup
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return Limits{}, err
	}
	return readLimits(func(controller string) (string, bool, bool) { return h.dirOf(string(text), controller) })
}

// Limits reads the limits of the group. The limits of its parents do not count. A zero field is no limit.
func (g *Group) Limits() (Limits, error) {
	l, err := readLimits(g.dir)
	if err != nil {
		return Limits{}, fmt.Errorf("read the limits of cgroup %q: %w", g.path, err)
	}
	return l, nil
}

// readLimits reads limits from the directories that dir returns for the controllers.
func readLimits(dir func(controller string) (path string, v2, ok bool)) (l Limits, err error) {
	if dir, v2, ok := dir("cpu"); ok {
		if l.CPU, err = readCPU(dir, v2); err != nil {
			return Limits{}, err
		}
	}
	if dir, v2, ok := dir("memory"); ok {
		file := "memory.limit_in_bytes"
		if v2 {
			file = "memory.max"
		}
		n, hasLimit, err := readLimit(dir, file)
		if err != nil {
			return Limits{}, err
		}
		if hasLimit {
			l.Memory = n
		}
	}
	if dir, _, ok := dir("pids"); ok {
		n, hasLimit, err := readLimit(dir, "pids.max")
		if err != nil {
			return Limits{}, err
		}
		if hasLimit {
			l.PIDs = n
		}
	}
	return l, nil
}

// dirOf is the directory of a process's group in the hierarchy of a controller. groups is the process's file in /proc.
func (h *Hierarchy) dirOf(groups, controller string) (dir string, v2, ok bool) {
	m, has := h.Controller(controller)
	if !has {
		return "", false, false
	}
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 || m.V2 != (fields[0] == "0") || !m.V2 && !strings.Contains(","+fields[1]+",", ","+controller+",") {
			continue
		}
		rel, err := filepath.Rel(m.root, fields[2])
		return filepath.Join(m.Dir, rel), m.V2, err == nil && filepath.IsLocal(rel)
	}
	return "", false, false
}

// readCPU reads a CPU limit in CPUs; 0 without a limit.
func readCPU(dir string, v2 bool) (float64, error) {
	quota, file := []string(nil), "cpu.max"
	var err error
	if v2 {
		quota, err = words(dir, file)
	} else {
		for _, file = range []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"} {
			value, bad := words(dir, file)
			if err = bad; err != nil {
				break
			}
			quota = append(quota, value...)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // the root, or a kernel without quotas
	}
	if err != nil {
		return 0, err
	}
	if len(quota) != 2 {
		return 0, fmt.Errorf("%s has %q instead of a quota and a period", file, quota)
	}
	if quota[0] == "max" || quota[0] == "-1" {
		return 0, nil
	}
	limit, err := strconv.ParseFloat(quota[0], 64)
	length, bad := strconv.ParseFloat(quota[1], 64)
	if err != nil || bad != nil || limit <= 0 || length <= 0 {
		return 0, fmt.Errorf("%s has %q, which is no limit", file, quota)
	}
	return limit / length, nil
}
