// Package guard keeps a run from exhausting the host: it refuses a benchmark that does not fit, and limits the run's own cgroup.
//
// The amounts are from functions, so that a test has any host. The runner measures the cost of a container and asks again with it.
package guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Amount is the free part and the whole of a resource of the host.
type Amount struct{ Free, Total int64 }

// Supply reads the resources of the host. A resource is unknown and not checked if its function is nil.
type Supply struct {
	// Disk is the space of the file system that holds a directory, in bytes.
	Disk func(dir string) (Amount, error)
	// Memory is the memory that programs can allocate without swapping, in bytes.
	Memory func() (Amount, error)
	// Tasks is the number of processes and threads that the kernel can create.
	Tasks func() (Amount, error)
	// Files is the number of files that this program can open. It keeps pipes for each container.
	Files func() (Amount, error)
	// CPUs is the number of CPUs of containers; 0 if it is unknown.
	CPUs int
}

// The reserve is the part of a resource that a run leaves to the host: 5 % of the whole. For memory and disks it has bounds: a small
// board needs some memory for its kernel, and 5 % of a large disk is too much. An eighth of the whole is the most, because
// a small file system in memory has little.
const (
	reserveShare = 20
	leastReserve = 128 << 20 // bytes
	mostReserve  = 4 << 30   // bytes
	largestShare = 8
)

// PairBytes is the kernel memory for each pair of containers, in bytes. Each cgroup of memory has a table of all file systems of the host: a
// block of 1 KiB for 64 of them (struct shrinker_info_unit of Linux 6.7 and later has 520 bytes). The tables are charged to no cgroup. A container
// of a bare runtime has one cgroup and up to 6 file systems. A pod has three and about twice as many, but takes far more memory itself.
const PairBytes = 6 * 1024 / 64

// reserveOf is the reserve of a number of things.
func reserveOf(total int64) int64 { return total / reserveShare }

// reserveOfBytes is the reserve of memory or of a file system.
func reserveOfBytes(total int64) int64 {
	return min(max(reserveOf(total), leastReserve), mostReserve, total/largestShare)
}

// Cost is the cost of one idle container of a target.
type Cost struct {
	Memory int64 // bytes
	Pair   int64 // bytes for each pair of containers
	Tasks  int64 // processes and threads
	Files  int64 // open files of this program
}

// Least is the least cost of a container. It serves until the cost is measured.
var Least = Cost{Tasks: 1}

// Directories are the run's directories for files, on a disk and in memory. Memory is empty on a host without such a directory; a benchmark that
// needs it reports that itself.
type Directories struct{ Data, Memory string }

// Lack returns an *engine.UnsupportedError with the missing amount if the host cannot have a benchmark's CPUs, memory, processes or
// open files on any target. Other errors mean that the host's resources cannot be read.
func (s Supply) Lack(n bench.Needs) error { return s.lack(n, Least) }

// lack also takes the cost of each container into account.
func (s Supply) lack(n bench.Needs, cost Cost) error {
	if s.CPUs > 0 && n.CPUs > s.CPUs {
		return &engine.UnsupportedError{
			What: "CPUs", Reason: fmt.Sprintf("it needs %d, and containers have %d", n.CPUs, s.CPUs), Advice: "pin less, set smaller parameters, or use a larger machine",
		}
	}
	containers := int64(max(n.Containers, 1))
	var parts []string
	part := func(bytes int64, format string, args ...any) {
		if bytes > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	part(containers*cost.Memory, "%s of %s", wording.Counted(int(containers), "container"), bytesText(cost.Memory))
	kernel := containers * containers * cost.Pair
	part(kernel, "the kernel's tables for them with %s", bytesText(kernel))
	part(n.Memory, "programs with %s", bytesText(n.Memory))
	files := n.Space.Memory + n.Space.Tmpfs
	part(files, "files with %s", bytesText(files))
	for _, one := range []struct {
		what, remedy, parts string
		need                int64
		supply              func() (Amount, error)
		reserve             func(total int64) int64
		text                func(n int64) string
	}{
		{"memory", "free memory", strings.Join(parts, ", "), containers*cost.Memory + kernel + n.Memory + files, s.Memory, reserveOfBytes, bytesText},
		{
			"processes and threads", "raise kernel.pid_max and kernel.threads-max",
			fmt.Sprintf("%s of %d", wording.Counted(int(containers), "container"), cost.Tasks), containers * cost.Tasks, s.Tasks, reserveOf, countText,
		},
		{
			"open files", "raise the limit (ulimit -n)",
			fmt.Sprintf("%s of %d", wording.Counted(int(containers), "container"), cost.Files), containers * cost.Files, s.Files, reserveOf, countText,
		},
	} {
		if one.need == 0 || one.supply == nil {
			continue
		}
		has, err := one.supply()
		if err != nil {
			return err
		}
		reserve := one.reserve(has.Total)
		spare := max(0, has.Free-reserve)
		if one.need <= spare {
			continue
		}
		return &engine.UnsupportedError{
			What: one.what,
			Reason: fmt.Sprintf("it needs %s (%s), and the host has %s above its reserve of %s: %s are missing",
				one.text(one.need), one.parts, one.text(spare), one.text(reserve), one.text(one.need-spare)),
			Advice: one.remedy + ", or set smaller parameters",
		}
	}
	return nil
}

// room returns an *engine.UnsupportedError if the files of a benchmark do not fit into the run's directories.
func (s Supply) room(need bench.Space, dirs Directories) error {
	for _, place := range []struct {
		dir  string
		need int64
	}{{dirs.Data, need.Disk}, {dirs.Memory, need.Memory}} {
		if place.need == 0 || s.Disk == nil {
			continue
		}
		has, err := s.Disk(place.dir)
		if err != nil {
			return err
		}
		reserve := reserveOfBytes(has.Total)
		if spare := max(0, has.Free-reserve); place.need > spare {
			return &engine.UnsupportedError{
				What: "space for its files",
				Reason: fmt.Sprintf("it writes up to %s, and %s has %s above its reserve of %s: %s are missing",
					bytesText(place.need), place.dir, bytesText(spare), bytesText(reserve), bytesText(place.need-spare)),
				Advice: "make room there, or set smaller parameters",
			}
		}
	}
	return nil
}

// Fits returns an error if a benchmark does not fit on the host, with containers of a given cost: an *engine.UnsupportedError as Lack.
func (s Supply) Fits(n bench.Needs, dirs Directories, cost Cost) error {
	if dirs.Memory == "" {
		n.Space.Memory = 0
	}
	if err := s.room(n.Space, dirs); err != nil {
		return err
	}
	return s.lack(n, cost)
}

// bytesText formats an amount of memory or space: "12.3 GiB".
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}

func countText(n int64) string { return fmt.Sprint(n) }

// Limit limits the memory and the processes of the run's own cgroup, which holds the containers and the private daemons. A workload that
// takes too much is killed there, before the host is out of memory. The limit is the part that was available when the run began
// and not the whole of the host, so that other programs keep theirs.
//
// The limit is above the need of every benchmark that fits, so it changes no result. Without a controller the cgroup has no limits.
func Limit(group *cgroup.Group, s Supply) error {
	level, err := group.Level()
	if err != nil {
		return err
	}
	limit := func(supply func() (Amount, error), reserve func(int64) int64, usage int64, limits func(int64) cgroup.Limits) error {
		if supply == nil {
			return nil
		}
		has, err := supply()
		if err != nil {
			return err
		}
		err = group.Limit(limits(max(1, has.Free-reserve(has.Total)) + usage))
		if errors.Is(err, errors.ErrUnsupported) {
			return nil // a warning about the host reports the missing controller
		}
		return err
	}
	return errors.Join(
		limit(s.Memory, reserveOfBytes, level.Memory, func(n int64) cgroup.Limits { return cgroup.Limits{Memory: n} }),
		limit(s.Tasks, reserveOf, level.Tasks, func(n int64) cgroup.Limits { return cgroup.Limits{PIDs: n} }),
	)
}
