package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the resource use of a group and of all groups below it since the group was created.
type Usage struct {
	// CPU is user and system time (v2: usage_usec of cpu.stat, v1: cpuacct.usage).
	CPU time.Duration
	// PeakMemory is the highest amount of memory charged to the group at one time, in bytes, with page cache and kernel memory.
	// It is 0 if unknown. Its precision is some hundred KiB, because the kernel charges in batches per CPU.
	// (v2: memory.peak, Linux 5.19 and later; v1: memory.max_usage_in_bytes.)
	PeakMemory int64
}

// Usage reads the counters of the group. The error is fs.ErrNotExist if the group does not exist.
func (g *Group) Usage() (Usage, error) {
	cpu, err := g.cpuTime()
	if err != nil {
		return Usage{}, fmt.Errorf("read the CPU time of cgroup %q: %w", g.path, err)
	}
	peak, err := g.peakMemory()
	if err != nil {
		return Usage{}, fmt.Errorf("read the peak memory of cgroup %q: %w", g.path, err)
	}
	return Usage{CPU: cpu, PeakMemory: peak}, nil
}

// Level is the present resource use of a group and of all groups below it.
type Level struct {
	// Memory is the memory charged to the group, in bytes, with page cache and kernel memory.
	// (v2: memory.current; v1: memory.usage_in_bytes.)
	Memory int64
	// Tasks is the number of processes and threads (pids.current).
	Tasks int64
}

// Level reads the present resource use of the group. A value is 0 without its controller. The error is fs.ErrNotExist if the group
// does not exist.
func (g *Group) Level() (l Level, err error) {
	if l.Memory, _, err = g.charge(); err == nil {
		l.Tasks, _, err = g.present("pids", "pids.current", "pids.current")
	}
	if err != nil {
		return Level{}, fmt.Errorf("read the level of cgroup %q: %w", g.path, err)
	}
	return l, nil
}

// Throttled returns the number of throttled periods of the group and all groups below it. In such a period a group had used up its
// CPU limit and its processes had to wait (nr_throttled in cpu.stat). The count of a removed group is lost. The error is
// errors.ErrUnsupported if the kernel has no CPU limits.
func (g *Group) Throttled() (int64, error) {
	dir, _, ok := g.dir("cpu")
	if !ok {
		return 0, fmt.Errorf("read how often cgroup %q was throttled: the host has no controller cpu: %w", g.path, errors.ErrUnsupported)
	}
	sum, found := int64(0), false
	err := walk(dir, func(dir string) error {
		text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		n, ok, err := statField(string(text), "nr_throttled")
		sum, found = sum+n, found || ok
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("read how often cgroup %q was throttled: %w", g.path, err)
	case !found:
		return 0, fmt.Errorf("cpu.stat of cgroup %q has no nr_throttled: %w", g.path, errors.ErrUnsupported)
	}
	return sum, nil
}

func (g *Group) cpuTime() (time.Duration, error) {
	if dir, v2, ok := g.dir("cpuacct"); ok && !v2 {
		ns, err := readInt(dir, "cpuacct.usage")
		return time.Duration(ns), err
	}
	dir, ok := g.unified()
	if !ok {
		return 0, fmt.Errorf("the host has neither cpuacct nor a unified tree: %w", errors.ErrUnsupported)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	return parseCPUStat(string(text))
}

// parseCPUStat returns usage_usec from a cpu.stat file.
func parseCPUStat(text string) (time.Duration, error) {
	us, ok, err := statField(text, "usage_usec")
	if err == nil && !ok {
		err = errors.New("cpu.stat has no usage_usec")
	}
	return time.Duration(us) * time.Microsecond, err
}

// statField returns a number from a cpu.stat or memory.stat file, and whether the file has it.
func statField(text, name string) (n int64, ok bool, err error) {
	_, rest, ok := strings.Cut("\n"+text, "\n"+name+" ")
	if !ok {
		return 0, false, nil
	}
	value, _, _ := strings.Cut(rest, "\n")
	u, err := strconv.ParseUint(value, 10, 53) // 53 bits of microseconds are 285 years, and fit into a time.Duration
	if err != nil {
		return 0, false, fmt.Errorf("%s is %q and no number", name, value)
	}
	return int64(u), true, nil
}

func (g *Group) peakMemory() (int64, error) {
	dir, v2, ok := g.dir("memory")
	if !ok {
		return 0, nil
	}
	if !v2 {
		return readInt(dir, "memory.max_usage_in_bytes")
	}
	peak, err := readInt(dir, "memory.peak")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return peak, err
}

// readInt reads a file with one number.
func readInt(dir, file string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	return n, nil
}

func exists(dir, file string) bool { return unix.Access(filepath.Join(dir, file), unix.F_OK) == nil }
