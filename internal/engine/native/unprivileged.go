package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Limits of an unprivileged process, together with its descendants where the host has the cgroup controllers.
const (
	mostMemory    = 256 << 20 // bytes
	mostProcesses = 64        // processes and threads
	mostFiles     = 256       // open files of each process
)

// unprivileged confines the processes of a Driver with Unprivileged. For the others it is nil.
type unprivileged struct {
	limits cgroup.Limits // of each cgroup; zero without cgroups
	rlimit []string      // the options of the probe for the other limits
	notes  []string
}

// newUnprivileged finds the limits that the host's cgroups have. Others become limits of each process, with a note.
func newUnprivileged(ctx context.Context, s engine.Session, rootless bool) (*unprivileged, error) {
	missing, err := missingControllers(ctx, s)
	if err != nil {
		return nil, err
	}
	u := &unprivileged{rlimit: []string{"--files", strconv.Itoa(mostFiles)}}
	if slices.Contains(missing, "memory") {
		u.rlimit = append(u.rlimit, "--memory", strconv.Itoa(mostMemory))
		u.notes = append(u.notes, fmt.Sprintf("without the cgroup controller memory, each process of a server is limited to %d MiB, and not all together", mostMemory>>20))
	} else {
		u.limits.Memory = mostMemory
	}
	switch {
	case !slices.Contains(missing, "pids"):
		u.limits.PIDs = mostProcesses
	case rootless:
		u.notes = append(u.notes, "without the cgroup controller pids, the processes of a server are not limited in number")
	default:
		u.rlimit = append(u.rlimit, "--processes", strconv.Itoa(mostProcesses))
		u.notes = append(u.notes, fmt.Sprintf("without the cgroup controller pids, the limit of %d processes includes all processes of the user nobody", mostProcesses))
	}
	return u, nil
}

// missingControllers lists the controllers that a cgroup of the session lacks.
func missingControllers(ctx context.Context, s engine.Session) ([]string, error) {
	if s.Cgroups == nil {
		return []string{"memory", "pids"}, nil
	}
	g, err := s.Cgroups.Create("/" + engine.Prefix + s.RunID + "/" + engine.Prefix + "limits")
	if err != nil {
		return nil, err
	}
	return g.Missing(), g.Destroy(ctx)
}

// confinement returns the options of the probe that take the rights of root from a process.
func (c *container) confinement() []string {
	if u := c.e.unprivileged; u != nil {
		return append([]string{"--unprivileged", "--devices", "--read-only"}, u.rlimit...)
	}
	return []string{"--confine", "--system", "--read-only", "--tmpfs", "/tmp"}
}

// limitUnprivileged sets the limits of an unprivileged process.
func (c *container) limitUnprivileged() error {
	u := c.e.unprivileged
	switch {
	case u == nil:
		return nil
	case c.spec.Writable:
		return &engine.UnsupportedError{What: "a writable directory", Reason: "an unprivileged process has none", Advice: "mount a tmpfs"}
	case u.limits == cgroup.Limits{}:
		return nil
	case c.group == nil:
		return errors.New("the process has no cgroup for its limits")
	}
	return c.group.Limit(u.limits)
}
