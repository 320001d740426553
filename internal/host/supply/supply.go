// Package supply reads the free resources of a machine, which decide whether a benchmark fits: space, memory, processes, open files. It also drops the
// page cache for cold reads.
package supply

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
)

// Space returns the bytes that this user can write to the file system of a directory, and the size of the file system.
func Space(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}

// Memory returns the bytes of memory that programs can allocate without swapping (MemAvailable) and the bytes of all memory, on the
// machine at root. Without the value, for example in a /proc with subset=pid, the error is fs.ErrNotExist.
func Memory(root string) (free, total int64, err error) {
	memory := machine.At(root).Meminfo()
	free, ok := memory["MemAvailable"]
	if !ok {
		return 0, 0, fmt.Errorf("read the available memory: no MemAvailable in /proc/meminfo: %w", fs.ErrNotExist)
	}
	return free, memory["MemTotal"], nil
}

// Meminfo returns the values of /proc/meminfo by name, in bytes, on the machine at root.
//
// Free pages in the kernel's lists for each CPU count as free and available here. The kernel omits them from MemFree and
// MemAvailable. Since Linux 6.7 it keeps hundreds of MiB there after programs exit, and gives them to the next programs, whose
// memory then does not appear in the fall of MemAvailable.
func Meminfo(root string) (map[string]int64, error) {
	t := machine.At(root)
	info := t.Meminfo()
	if len(info) == 0 {
		return nil, fmt.Errorf("read the memory of the host: /proc/meminfo is empty: %w", fs.ErrNotExist)
	}
	amount := listed(t) * int64(os.Getpagesize())
	for _, name := range []string{"MemFree", "MemAvailable"} {
		if _, ok := info[name]; ok {
			info[name] += amount
		}
	}
	return info, nil
}

// listed is the number of free pages in the lists for each CPU. It is 0 if the kernel does not show it.
func listed(t machine.Tree) (pages int64) {
	for _, line := range t.Lines("proc/zoneinfo") {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "count:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 40); err == nil {
				pages += n
			}
		}
	}
	return pages
}

// Tasks returns the number of processes and threads that the machine at root can create, and the limit: the lower one of
// kernel.pid_max and kernel.threads-max. The kernel's own count of tasks needs no right to see other users' processes (hidepid).
func Tasks(root string) (free, total int64, err error) {
	t := machine.At(root)
	for _, file := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		n, err := strconv.ParseInt(t.Text(file), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the limit of processes in /%s: %w", file, fs.ErrNotExist)
		}
		if total == 0 || n < total {
			total = n
		}
	}
	// The fourth field of loadavg is "running/all".
	fields := strings.Fields(t.Text("proc/loadavg"))
	if len(fields) < 4 {
		return 0, 0, fmt.Errorf("count processes: no number in /proc/loadavg: %w", fs.ErrNotExist)
	}
	_, count, _ := strings.Cut(fields[3], "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("count processes in /proc/loadavg: %w", err)
	}
	return max(0, total-n), total, nil
}

// Files returns the number of files that this process can open, and its limit.
func Files() (free, total int64, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, 0, fmt.Errorf("count open files: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // it was only read
	if err != nil {
		return 0, 0, fmt.Errorf("count open files: %w", err)
	}
	total = int64(min(limit.Cur, 1<<62))
	return max(0, total-int64(len(names))), total, nil
}
