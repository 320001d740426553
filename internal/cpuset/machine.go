package cpuset

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const sysCPU = "sys/devices/system/cpu"

// Online returns the online CPUs of a machine. root contains its /sys; it is "/" except in tests.
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

// Cores returns the CPUs of each core with several online threads. A machine without topology information has none.
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
