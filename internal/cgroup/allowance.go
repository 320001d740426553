package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Allowance is the part of a limit that is unused, and the limit.
type Allowance struct{ Free, Total int64 }

// Memory returns the memory that new groups may take by the limits of [Hierarchy.Base] and of all groups above it, in bytes. The limit of a
// container or of a user's slice is often lower than the memory of the machine. Pages of files are free, as in MemAvailable: the kernel
// reclaims them first. ok is false without a limit.
func (h *Hierarchy) Memory() (a Allowance, ok bool, err error) {
	m, _ := h.Controller("memory")
	if m.V2 {
		return h.allowance("memory", "memory.max", func(dir string) (int64, error) { return unreclaimable(dir, "memory.current", "") })
	}
	return h.allowance("memory", "memory.limit_in_bytes", func(dir string) (int64, error) {
		return unreclaimable(dir, "memory.usage_in_bytes", "total_") // with the groups below
	})
}

// Tasks is Memory for processes and threads.
func (h *Hierarchy) Tasks() (a Allowance, ok bool, err error) {
	return h.allowance("pids", "pids.max", func(dir string) (int64, error) { return readInt(dir, "pids.current") })
}

// unreclaimable returns the memory of a group without pages of files.
func unreclaimable(dir, file, prefix string) (int64, error) {
	usage, err := readInt(dir, file)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for _, list := range []string{"inactive_file", "active_file"} {
		n, _, err := statField(string(text), prefix+list)
		if err != nil {
			return 0, err
		}
		usage -= n
	}
	return max(0, usage), nil
}

// allowance returns the lowest unused part of a limit from the base up to the root of the mount. The root of the whole hierarchy has no
// limits.
func (h *Hierarchy) allowance(controller, limit string, usage func(dir string) (int64, error)) (lowest Allowance, ok bool, err error) {
	m, has := h.Controller(controller)
	if !has || h.base == "" {
		return Allowance{}, false, nil
	}
	for group := h.base; ; group = path.Dir(group) {
		dir := filepath.Join(m.Dir, group)
		maximum, hasLimit, err := readLimit(dir, limit)
		if err != nil {
			return Allowance{}, false, fmt.Errorf("read the limit of cgroup %q: %w", group, err)
		}
		if hasLimit {
			amount, err := usage(dir)
			if err != nil {
				return Allowance{}, false, fmt.Errorf("read the level of cgroup %q: %w", group, err)
			}
			if free := max(0, maximum-amount); !ok || free < lowest.Free {
				lowest, ok = Allowance{Free: free, Total: maximum}, true
			}
		}
		if group == "/" {
			return lowest, ok, nil
		}
	}
}

// noLimit is above all real limits. On v1 a group without a limit of memory has the highest number of whole pages.
const noLimit = math.MaxInt64 / 2

// readLimit reads a limit. A file that is missing, "max" and the highest number are no limit.
func readLimit(dir, file string) (n int64, ok bool, err error) {
	text, err := words(dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	value := strings.Join(text, " ")
	if value == "max" {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(value, 10, 64); err != nil {
		return 0, false, fmt.Errorf("read %s: %w", file, err)
	}
	return n, n < noLimit, nil
}
