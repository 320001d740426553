package machine

import (
	"strconv"
	"strings"
)

// Meminfo returns the values of /proc/meminfo in bytes.
func (t Tree) Meminfo() map[string]int64 {
	info := map[string]int64{}
	for _, line := range t.Lines("proc/meminfo") {
		name, value, _ := strings.Cut(line, ":")
		number, isKiB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		if isKiB {
			n <<= 10
		}
		info[name] = n
	}
	return info
}

// Files of the kernel with the settings of its memory.
const (
	// KSM is the directory of the kernel samepage merging.
	KSM = "sys/kernel/mm/ksm/"
	// THPDir has the settings of transparent huge pages; THP is the choice of their use.
	THPDir = "sys/kernel/mm/transparent_hugepage/"
	THP    = THPDir + "enabled"
	// Swappiness is the tendency of the kernel to swap instead of dropping the page cache.
	Swappiness = "proc/sys/vm/swappiness"
)
