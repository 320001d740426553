package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Holds reports whether a process is in groups that this program sees, at the paths that the kernel reports. It is false for a process
// outside of this program's cgroup namespace, and for one in a part of the hierarchies that is not mounted here.
func (h *Hierarchy) Holds(pid int) (bool, error) {
	proc := filepath.Dir(filepath.Dir(h.own)) // of h.own = /proc/self/cgroup
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false, fmt.Errorf("find the cgroups of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 && (fields[2] == "/.." || strings.HasPrefix(fields[2], "/../")) {
			return false, nil // the kernel's spelling of a group outside of the namespace
		}
	}
	found := false
	for _, controller := range used {
		dir, _, ok := h.dirOf(string(text), controller)
		if !ok {
			continue
		}
		pids, err := words(dir, "cgroup.procs")
		if err != nil || !slices.Contains(pids, strconv.Itoa(pid)) {
			return false, nil // another group, or none, is mounted at the path
		}
		found = true
	}
	return found, nil
}
