package cpuset

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const sysCPU = "sys/devices/system/cpu"

// Online gives the CPUs that a machine has and uses. root is where its /sys is, "/" but for tests.
func Online(root string) (Set, error) {
	text, err := os.ReadFile(filepath.Join(root, sysCPU, "online"))
	if err != nil {
		return nil, fmt.Errorf("learn which CPUs there are: %w", err)
	}
	set, err := Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("learn which CPUs there are: %w", err)
	}
	return set, nil
}

// Cores gives the CPUs of each core that has several of those online: its threads, which share it. A machine that does not tell
// has none.
func Cores(root string, online Set) []Set {
	var cores []Set
	for _, cpu := range online {
		text, err := os.ReadFile(filepath.Join(root, sysCPU, "cpu"+strconv.Itoa(cpu), "topology", "thread_siblings_list"))
		if err != nil {
			continue
		}
		threads, err := Parse(strings.TrimSpace(string(text)))
		if threads = threads.And(online); err == nil && len(threads) > 1 && threads[0] == cpu {
			cores = append(cores, threads)
		}
	}
	return cores
}
