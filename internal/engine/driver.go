package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver makes the targets of one engine live.
type Driver interface {
	// Name is the engine's name in targets.
	Name() string
	// Candidates lists the targets that may be on this machine, without running a
	// container on them.
	Candidates(ctx context.Context, s Session) []Candidate
	// Open makes t live, after it has run one container if it can fail to. It is
	// bounded: a runtime that hangs is found out. If the target cannot work here the
	// error is an *UnsupportedError, with an *OpenError around it where more is known.
	Open(ctx context.Context, t target.Target, s Session) (Engine, error)
}

// Sweeper is a Driver that uses daemons which outlive a run: the user's own.
type Sweeper interface {
	// Sweep removes what run s.RunID has left with the daemon at s.Sockets[Name()]: what carries its
	// label, and nothing else. It returns how many containers, sandboxes and images it removed.
	Sweep(ctx context.Context, s Session) (removed int, err error)
}

// Candidate is a target that may be on this machine.
type Candidate struct {
	Info
	// Err is why it cannot work here, as far as that shows without trying.
	Err error
	// Default tells that it is the runtime as it is, not one more time with an option.
	Default bool
}

// OpenError says why a target does not work, with what it is all the same.
type OpenError struct {
	Info Info
	Err  *UnsupportedError
}

func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap gives the *UnsupportedError.
func (e *OpenError) Unwrap() error { return e.Err }

// Session is what the engines of one run share.
type Session struct {
	// RunID marks all that is made: names begin with Prefix and the run's ID.
	RunID string
	// State is the run's own directory for what runtimes keep while they run, mode 0700,
	// in memory where the host has such a place (/run), as runtimes have it by default.
	State string
	// Data is the run's own directory on disk, mode 0700.
	Data string
	// Rootfs is a root file system that holds the probe, to try runtimes with.
	Rootfs string
	// Probe is the path of the probe on the host.
	Probe string
	// Runtimes says what names of runtimes stand for; a name that is not in it is
	// looked up on PATH.
	Runtimes map[string]target.Runtime
	// Targets are those that are about to be opened: an engine that is configured before it
	// starts is configured for them.
	Targets []target.Target
	// Engines gives binaries to names of engines' programs (containerd, dockerd, podman,
	// crio, …); a name that is not in it is looked up on PATH.
	Engines map[string]string
	// Sockets gives the address of the user's own daemon to names of engines: a path, or a URL with
	// unix:// or tcp://.
	Sockets map[string]string
	// Managed tells not to use the user's own daemons, even if they can be reached.
	Managed bool
	// EngineCPUs are the CPUs on which daemons of the run stay, as the kernel spells them; empty is all.
	EngineCPUs string
	// Registry serves the images, for engines that pull; nil for those that do not.
	Registry *image.Registry
	// Launcher starts all processes.
	Launcher *process.Launcher
	// Cgroups is nil where this process may not make cgroups (no root, no
	// delegation).
	Cgroups *cgroup.Hierarchy
	// Hidden are the mount points that processes of the launcher do not see.
	Hidden []string
}

// Hides tells whether a path lies where processes of the launcher do not see it.
func (s Session) Hides(path string) bool {
	return slices.ContainsFunc(s.Hidden, func(point string) bool { return strings.HasPrefix(path, point+"/") })
}

// DaemonsDir is the directory in State with a file for each of the user's daemons that the run uses:
// it is named after the engine and holds the address. By it a later run finds what a killed one left.
const DaemonsDir = "daemons"

// RecordDaemon records that the run is about to make something with a daemon of the user's.
func (s Session) RecordDaemon(engineName, address string) error {
	dir := filepath.Join(s.State, DaemonsDir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, engineName), []byte(address), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record that %s at %s is used: %w", engineName, address, err)
	}
	return nil
}

// Label is the key of the label that all objects with a daemon carry; its value is the run's ID.
const Label = "touchstone.run"

// Prefix begins the name of everything that Touchstone makes on a host.
const Prefix = "touchstone-"

// SetCgroupParent makes all processes that the launcher starts from now on begin in the child "host" of a cgroup, whose
// path counts from the hierarchy's base. With an empty group they begin in the cgroup of this program again. It may be
// called for the same group again.
func (s Session) SetCgroupParent(group string) error {
	if group == "" {
		own, err := s.Cgroups.OwnThreadFiles()
		if err != nil {
			return err
		}
		return s.Launcher.SetCgroup(own, nil)
	}
	g, err := s.Cgroups.Create(group + "/host")
	if errors.Is(err, fs.ErrExist) {
		g, err = s.Cgroups.Open(group + "/host")
	}
	if err != nil {
		return fmt.Errorf("make a cgroup for the runtime's processes: %w", err)
	}
	dir, err := g.OpenDir()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // v1 has no such directory
		return fmt.Errorf("open the cgroup for the runtime's processes: %w", err)
	}
	return s.Launcher.SetCgroup(g.ThreadFiles(), dir)
}

// InCgroup calls f while p starts its processes in a cgroup of the run with this name. Afterwards it kills all processes
// left in the cgroup, within the limit. Without cgroups it only calls f.
func (s Session) InCgroup(ctx context.Context, p CgroupPlacer, name string, limit time.Duration, f func() error) error {
	if s.Cgroups == nil {
		return f()
	}
	path := "/" + Prefix + s.RunID + "/" + name
	group, err := s.Cgroups.Open(path)
	if err != nil {
		return err
	}
	if err = p.SetCgroupParent(path); err == nil {
		err = f()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return errors.Join(err, p.SetCgroupParent(""), group.Destroy(ctx))
}

// ContainerCgroup returns the cgroup of a container below parent, or below the run's own cgroup if parent is empty. It is nil
// on a host without cgroups.
func (s Session) ContainerCgroup(parent, id string) (*cgroup.Group, error) {
	if s.Cgroups == nil {
		return nil, nil
	}
	if parent == "" {
		parent = "/" + Prefix + s.RunID
	}
	return s.Cgroups.Open(parent + "/" + id)
}
