package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Kind classifies engines by the layers between Touchstone and a program.
type Kind string

// The kinds of engines, from the inside out.
const (
	HostProcess Kind = "native"  // a process of the host, without a container
	BareRuntime Kind = "runtime" // Touchstone calls the runtime itself
	FullEngine  Kind = "engine"  // an engine, with its daemon, shim or monitor, calls the runtime
)

// Description declares the facts about an engine that the rest of Touchstone needs: the accounting of cost, the checks of a
// plan, the selection of targets and the layers of a report. No other package knows an engine by name.
type Description struct {
	// Name is the engine's name in targets. It is also the key of its socket in a plan and in Session.Sockets.
	Name string
	Kind Kind
	// Socket reports that a plan may name the socket of the user's own engine, which also selects its targets.
	Socket bool
	// CRI reports that the engine speaks CRI, so that --cri can name its socket.
	CRI bool
	// AddressVariable is the environment variable with the address of the user's own daemon, such as DOCKER_HOST.
	// Users set it for other purposes too, so an address alone does not select the engine's targets.
	AddressVariable string
	// Binaries are the keys of Session.Engines that the engine uses: programs, and the folder CNI.
	Binaries []string
	// Launches reports that Touchstone starts a program for each call: the engine's command line, or the runtime.
	Launches bool
	// Commands are the runtime's commands in the time of create, start, exec and delete, by these names. A missing name is the one
	// command of the same name. enginetest.Commands checks the lists with runc. Versions of an engine that are not tested may differ.
	Commands map[string][]string
	// Programs are the engine's own programs, by component of the cost. The runtimes' programs are declared in package
	// runtimes.
	Programs monitor.Programs
}

// Driver opens the targets of one engine.
type Driver interface {
	// Describe declares the engine. It is constant.
	Describe() Description
	// Candidates lists the targets that may be on this machine, without running a container on them.
	Candidates(ctx context.Context, s Session) []Candidate
	// Open opens t, after one test container if the target can fail to run it. It has a time limit, so a runtime
	// that hangs is detected. If the target cannot work here the error is an *UnsupportedError, inside an
	// *OpenError if the target's Info is known.
	Open(ctx context.Context, t target.Target, s Session) (Engine, error)
}

// Sweeper is a Driver for user daemons, which outlive a run.
type Sweeper interface {
	// Sweep removes the objects that run s.RunID has left with the daemon at the engine's entry of s.Sockets. It
	// removes only objects with the run's label and name (Session.Owns). It returns the number of containers, sandboxes and images that it
	// removed.
	Sweep(ctx context.Context, s Session) (count int, err error)
}

// Candidate is a target that may be on this machine.
type Candidate struct {
	Info
	// Err is the reason why the target cannot work here, as far as it shows without a container.
	Err error
	// Default reports that the target is the plain runtime, and not a variant with an option.
	Default bool
}

// OpenError is the reason why a target does not work, with the facts about it that are known.
type OpenError struct {
	Info Info
	Err  *UnsupportedError
	// Transient is set if another attempt may succeed: everything was there, the first container did not work, and the error may pass.
	Transient bool
}

func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the *UnsupportedError.
func (e *OpenError) Unwrap() error { return e.Err }

// Session is the environment that the engines of one run share.
type Session struct {
	// RunID marks all objects of the run: their names begin with Prefix and the run's ID.
	RunID string
	// State is the run's own directory for the state of running containers, mode 0700. It is in memory if the host
	// has /run, which is the default place of runtimes.
	State string
	// Data is the run's own directory on disk, mode 0700.
	Data string
	// Memory is the run's own directory in memory, mode 0700. It is empty if the host has none.
	Memory string
	// Rootfs is a root file system that holds the probe, for test containers.
	Rootfs string
	// Probe is the path of the probe on the host.
	Probe string
	// Runtimes maps names of runtimes to binaries and options. Other names are looked up on PATH.
	Runtimes map[string]target.Runtime
	// Targets are the targets that the run is about to open. An engine whose configuration precedes its start is
	// configured for them.
	Targets []target.Target
	// Engines maps the programs of engines (Description.Binaries) to paths. Program finds the others.
	Engines map[string]string
	// Sockets maps engines to the address of the user's own daemon: a path, or a URL with unix:// or tcp://.
	Sockets map[string]string
	// Managed forbids the user's own daemons, even if they can be reached.
	Managed bool
	// Containers is the largest number of containers that exist at once in the run; 0 is one.
	Containers int
	// Seccomp is the filter of all containers.
	Seccomp Seccomp
	// Pods are the properties of pods over CRI.
	Pods Pods
	// EngineCPUs are the CPUs of the run's daemons, in the kernel's notation; empty is all.
	EngineCPUs string
	// Registry serves the images to engines that pull; nil if none does.
	Registry *image.Registry
	// Launcher starts all processes.
	Launcher *process.Launcher
	// Cgroups is nil if this process may not make cgroups (no root, no delegation).
	Cgroups *cgroup.Hierarchy
	// Hidden are the mount points that are hidden from the launcher's processes.
	Hidden []string
	// Container is the kind of the container that this program itself runs in, such as docker. It is empty outside of containers.
	Container string
	// ContainerRemedy is the way out of that container, or to its rights.
	ContainerRemedy string
	// Confined is the reason why this program, though it is root, can make no namespaces and mounts. It is empty if it can.
	Confined error
}

// Admits returns an *UnsupportedError for a target that needs namespaces and mounts of this program, if it can make none.
func (s Session) Admits(t target.Target) error {
	if s.Confined == nil {
		return nil
	}
	advice := "give it CAP_SYS_ADMIN, without a filter of seccomp or AppArmor"
	if s.Container != "" {
		advice = fmt.Sprintf("it runs in a container (%s): %s", s.Container, s.ContainerRemedy)
	}
	return &UnsupportedError{What: t.String(), Reason: fmt.Sprintf("this program is root and may not make namespaces and mounts: %v", s.Confined), Advice: advice}
}

// MakeStateDir makes a new directory in State for one target of an engine. Its path is short, because runtimes put sockets
// below it, and the path of a socket has at most 107 bytes.
func (s Session) MakeStateDir(engineName string) (string, error) {
	parent := filepath.Join(s.State, engineName)
	err := os.MkdirAll(parent, 0o700)
	for n := 0; err == nil; n++ {
		dir := filepath.Join(parent, strconv.Itoa(n))
		if err = os.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return "", fmt.Errorf("make a state directory of engine %s: %w", engineName, err)
}

// Hides reports whether a path is hidden from the launcher's processes.
func (s Session) Hides(path string) bool {
	return slices.ContainsFunc(s.Hidden, func(point string) bool { return strings.HasPrefix(path, point+"/") })
}

// DaemonsDir is the directory in State with a file for each user daemon that the run uses. The file has the name of the
// engine and contains the address, in the form that the Sweep of the engine reads. A later run reads it to remove the objects of a killed run.
const DaemonsDir = "daemons"

// RecordDaemon records that the run is about to make objects with a daemon of the user's.
func (s Session) RecordDaemon(engineName, address string) error {
	dir := filepath.Join(s.State, DaemonsDir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, engineName), []byte(address), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record the use of %s at %s: %w", engineName, address, err)
	}
	return nil
}

// Label is the key of the label on all objects of a daemon; its value is the run's ID.
const Label = "touchstone.run"

// Prefix begins the name of everything that Touchstone makes on a host.
//
// Invariant object-names.
const Prefix = "touchstone-"

// Owns reports whether an object of a daemon belongs to the run, by its label and by its name. Its caller checks every object of a list
// before the removal, because a daemon may ignore the filter of the request.
//
// Invariant foreign-objects.
func (s Session) Owns(name, label string) bool {
	return s.RunID != "" && label == s.RunID && strings.HasPrefix(name, Prefix+s.RunID+"-")
}

// UnknownPrograms is the error of Installed.Programs for a target of the user's own daemon, whose programs may be anywhere.
func UnknownPrograms(t target.Target) error {
	return &UnsupportedError{
		What: t.String(), Reason: "the programs of a daemon that Touchstone has not started are unknown",
		Advice: "use --managed for a private daemon from the programs on PATH",
	}
}

// UnknownShim is the error of Installed.Programs for a runtime that is a containerd shim with helpers of its own.
func UnknownShim(t target.Target, shim string) error {
	return &UnsupportedError{What: t.String(), Reason: "the programs that the shim " + shim + " starts are unknown"}
}

// SetCgroupParent makes all processes that the launcher starts from now on begin in the child "host" of a cgroup, whose
// path counts from the hierarchy's base. With an empty group they begin in the cgroup of this program again. It may be
// called for the same group again.
func (s Session) SetCgroupParent(group string) error {
	if group == "" {
		files, err := s.Cgroups.OwnThreadFiles()
		if err != nil {
			return err
		}
		return s.Launcher.SetCgroup(files, nil)
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
// left in the cgroup, within UndoLimit, or within stuckLimit if one of them is known to be stuck. Without cgroups it only calls f.
func (s Session) InCgroup(ctx context.Context, p CgroupPlacer, name string, f func() error) error {
	if s.Cgroups == nil {
		return f()
	}
	path := s.Cgroup() + "/" + name
	group, err := s.Cgroups.Open(path)
	if err != nil {
		return err
	}
	if err = p.SetCgroupParent(path); err == nil {
		err = f()
	}
	limit := UndoLimit
	if Stuck(err) {
		limit = stuckLimit
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return errors.Join(err, p.SetCgroupParent(""), group.Destroy(ctx))
}

// stuckLimit is the deadline for the removal of a cgroup with a stuck process. The other processes are killed at once.
const stuckLimit = time.Second

// ContainerCgroup returns the cgroup of a container below parent, or below the run's own cgroup if parent is empty. It is nil
// on a host without cgroups.
func (s Session) ContainerCgroup(parent, id string) (*cgroup.Group, error) {
	if s.Cgroups == nil {
		return nil, nil
	}
	if parent == "" {
		parent = s.Cgroup()
	}
	return s.Cgroups.Open(parent + "/" + id)
}

// Cgroup is the path of the run's own cgroup from the hierarchy's base.
func (s Session) Cgroup() string { return "/" + Prefix + s.RunID }

// CgroupMode is the value of Info.Cgroup for an engine whose containers are in cgroups of the run.
func (s Session) CgroupMode() string {
	if s.Cgroups == nil {
		return string(cgroup.None)
	}
	return string(s.Cgroups.Mode)
}
