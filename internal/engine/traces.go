package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
)

// MountsOf lists the mounts whose path contains an ID, in the mount namespace of a process or a thread: proc is its directory in
// /proc.
func MountsOf(proc, id string) ([]string, error) {
	f, err := os.Open(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	mounts, err := mountinfo.GetMountsFromReader(f, func(i *mountinfo.Info) (skip, stop bool) { return !strings.Contains(i.Mountpoint, id), false })
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var found []string
	for _, m := range mounts {
		found = append(found, "mount "+m.Mountpoint)
	}
	return found, nil
}

// ErrHiddenLimits is the error of Limited if the host does not enforce the limits of a container by its cgroup.
var ErrHiddenLimits error = &UnsupportedError{What: "the limits of a container", Reason: "the host does not see the cgroup that enforces them"}

// LimitsOf reads the limits of the cgroup that holds a process. It is an implementation of Limited.
func LimitsOf(groups *cgroup.Hierarchy, pid int) (Resources, error) {
	l, err := groups.LimitsOf(pid)
	return Resources{CPU: l.CPU, Memory: l.Memory, PIDs: l.PIDs}, err
}
