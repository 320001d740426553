// Package engine is the contract between what is measured and what drives it.
//
// An [Engine] is a target made live: one runtime, driven in one way. It creates
// containers; a [Container] goes through start, kill, wait and delete. What only
// some can do (exec, pause, update) is an optional interface of the container,
// and [Engine.Supports] says beforehand whether it will work, with the reason if
// not. There are no stubs that return "not supported".
//
// The contract keeps engines honest for measuring: a method does one thing and
// returns when that thing is done, by waiting on an event, never by polling; no
// method keeps time. Every method obeys its context: when it is cancelled
// the method returns soon, and whatever the call was about to make can be removed
// by Delete. Errors carry what the runtime said.
//
// The packages below implement it: native, oci, cri, docker, podman, fake. enginetest is the
// conformance suite they all pass, engines is the list of them, runtimes finds the low-level
// runtimes that they share, managed runs daemons for those that need one.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Engine drives one target. Its methods may be called from several goroutines.
type Engine interface {
	// Info says what the engine is. It does not change during a run.
	Info() Info
	// Supports returns nil if the capability works on this target and host, and
	// an *UnsupportedError with the reason if not.
	Supports(Capability) error
	// Create makes a container whose process does not run yet: a prepared
	// cgroup, namespaces and root file system, as the OCI runtime specification
	// defines it. If it fails or is cancelled, nothing is left for the caller to
	// remove.
	Create(ctx context.Context, spec Spec) (Container, error)
	// Close removes what the engine itself set up. Containers must be gone.
	// It is idempotent.
	Close() error
}

// Placer is an Engine that can put all it starts on the host (runtime binary,
// sandbox, containers) below a given cgroup, so that their cost can be told from
// the rest of the machine.
type Placer interface {
	// Place makes group the parent of all that is started from now on.
	// It must not be called while containers exist.
	Place(group string) error
}

// Accountant is an Engine that knows what its host processes have used so far,
// also where no cgroup can tell (rootless).
type Accountant interface {
	// Usage gives the total of all processes that have ended since the start.
	Usage() Usage
}

// Usage is what processes cost the host.
type Usage struct {
	// CPU is user and system time.
	CPU time.Duration
	// PeakMemory is the highest sum of memory that was charged to them at once, in
	// bytes; 0 if it is not known.
	PeakMemory int64
	// Served tells that a daemon's part is in it, which no limit of a container binds.
	Served bool
}

// Served is an Engine whose containers are made by processes that were there before: a daemon,
// and what it starts for a container (shims, runtime calls, network plug-ins), which run where the
// daemon does and not where Place puts them.
type Served interface {
	Service() Service
}

// Service is what serves the containers of an engine.
type Service struct {
	// Daemons are the pids of the processes that outlive containers.
	Daemons []int
	// Group is the cgroup in which they and what they start run; nil if it is not theirs alone or cannot
	// be told.
	Group *cgroup.Group
}

// Dialer is an Engine whose containers have another host network than this process: that of a
// daemon in a network namespace of its own.
type Dialer interface {
	// Dial connects to an address of the network that containers with HostNet have.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Networker is an Engine whose containers can be Bridged.
type Networker interface {
	// Link describes the network that Bridged containers share with each other and with the host's end.
	// It makes what is missing of it. It does not change while the engine is open.
	Link(ctx context.Context) (Link, error)
}

// Link is a network between containers and the host.
type Link struct {
	// Namespace is the path of the network namespace in which the host's end lies; empty is that of this
	// process.
	Namespace string
	// Host is the address of the host's end, as containers reach it.
	Host netip.Addr
	// About says what the packets go through, for the record: "interface", "mtu", "offloads" and the like. It is
	// read only: all calls give the same.
	About map[string]string
}

// Puller is an Engine that gets images from a registry.
type Puller interface {
	// Pull fetches an image that is not there yet, and unpacks it.
	Pull(ctx context.Context, ref string) error
	// RemoveImage removes an image with what was unpacked of it. It is idempotent.
	RemoveImage(ctx context.Context, ref string) error
}

// Container is one container. Its ID is unique on the host and carries the
// run's ID. Start, Kill, Wait and State refer to its first process.
type Container interface {
	ID() string
	// Start runs the process of a created container.
	Start(ctx context.Context) error
	// Kill sends a signal to the process. Killing a process that has ended
	// is no error.
	Kill(ctx context.Context, signal syscall.Signal) error
	// Wait returns when the process has ended. It can be called again, and by
	// several goroutines. A process that fails is no error of Wait.
	Wait(ctx context.Context) (Exit, error)
	// State asks the runtime.
	State(ctx context.Context) (State, error)
	// Delete removes the container by force, whatever its state, with all that
	// belongs to it. It is idempotent. It returns when output has been
	// written to the Spec's writers to its end.
	Delete(ctx context.Context) error
}

// Execer is a container in which further processes can be started. Exec returns
// when the process has ended and its output has been written.
type Execer interface {
	Exec(ctx context.Context, p Process) (Exit, error)
}

// Pauser is a container that can be frozen and thawed. Each call returns
// when the container is in the new state.
type Pauser interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Updater is a container whose limits can be changed while it runs.
type Updater interface {
	Update(ctx context.Context, r Resources) error
}

// Meter is a container of which the engine tells what it uses, by its own interface: what a kubelet or an
// operator's dashboard asks for every few seconds.
type Meter interface {
	Stats(ctx context.Context) (Stats, error)
}

// Stats are what an engine says that a container uses.
type Stats struct {
	// CPU is the time that its processes have used so far.
	CPU time.Duration
	// Memory is what is charged to them now, in bytes, as the engine counts it.
	Memory int64
}

// Addressed is a container that is Bridged.
type Addressed interface {
	// Address gives the container's address in the network of its engine's Link. The container has been started.
	Address(ctx context.Context) (netip.Addr, error)
}

// Capability is something that not every target can do.
type Capability string

// The capabilities there are. CanExec, CanPause, CanUpdate and CanStats name the optional interface that
// a container of a target with the capability has, CanPull that of the engine. NetworkBridge promises
// Networker of the engine and Addressed of Bridged containers. CanWrite and CanTmpfs tell that a Spec may be
// Writable, and that its mounts may be empty file systems in memory.
const (
	CanExec       Capability = "exec"
	CanPause      Capability = "pause"
	CanUpdate     Capability = "update"
	NetworkHost   Capability = "host network"
	NetworkBridge Capability = "bridged network"
	CanPull       Capability = "pull"
	CanStats      Capability = "stats"
	CanWrite      Capability = "writable root"
	CanTmpfs      Capability = "tmpfs"
)

// Capabilities lists all capabilities in the order in which they are shown.
func Capabilities() []Capability {
	return []Capability{CanExec, CanPause, CanUpdate, NetworkHost, NetworkBridge, CanPull, CanStats, CanWrite, CanTmpfs}
}

// Isolation is what stands between a container and the host's kernel.
type Isolation string

// The kinds of isolation.
const (
	NoIsolation  Isolation = "none"
	SharedKernel Isolation = "shared kernel"
	UserKernel   Isolation = "user-space kernel"
	VM           Isolation = "virtual machine"
	Unknown      Isolation = "not known"
)

// Info says what an engine is.
type Info struct {
	Target  target.Target
	Binary  string // path of the runtime's binary, empty for native
	Version string // as the binary says it, on one line
	Isolation
	// Cgroup says how containers are limited and accounted: the mode of the host
	// ("v1", "hybrid", "v2"), or "none" with the reason in Notes.
	Cgroup   string
	Rootless bool
	// Bare is set for an engine that calls the runtime itself, without a daemon, shim or monitor.
	Bare bool
	// Notes says what was arranged for this target on this host, or is known to
	// differ from others.
	Notes []string
}

// Spec describes a container. The same Spec gives the same program, root file
// system and arguments on every target.
type Spec struct {
	// ID is unique on the host and begins with "touchstone-" and the run's ID.
	ID string
	// Rootfs is the directory that is the container's root, for engines that take one. Containers share it, and
	// none writes to it.
	Rootfs string
	// Image is the reference of an image with the same file system, for engines that pull.
	Image string
	// Process is the container's first process.
	Process Process
	// Writable lets the process write to its root file system, into a layer of its own that goes with the
	// container: that of the engine's snapshotter, and an overlay on the run's disk where the engine has none.
	// On native, which has no layers, it is a directory of the run's disk at /data alone. Otherwise the root is read-only.
	Writable bool
	// Mounts are mounts in addition to /proc, /dev, /sys and /tmp.
	Mounts []Mount
	// Network is NoNetwork unless set.
	Network Network
	// Join is the path of a network namespace that the process runs in instead of what Network says. Only
	// native can do it: this is how a program comes to the host's end of a Link.
	Join string
	// Resources are the limits at creation.
	Resources Resources
}

// Process is a program to run in a container, as root, in the root directory.
type Process struct {
	Args []string
	Env  []string
	// Stdout and Stderr receive the output; nil discards it. Each is written by one
	// goroutine, in order, as the bytes come, and closed after the last byte if it is
	// an io.Closer.
	Stdout, Stderr io.Writer
}

// CloseOutput closes the writers of p that can be closed.
func (p Process) CloseOutput() {
	for _, w := range []io.Writer{p.Stdout, p.Stderr} {
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// Mount binds a directory of the host into a container. Without a Source it is an empty file system in
// memory, made by the runtime for the container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Network is what a container can reach.
type Network string

// The networks there are.
const (
	NoNetwork Network = ""     // a namespace of its own, with the loopback interface and what the engine gives every container
	HostNet   Network = "host" // the host's own
	// Bridged is a namespace of the container's own with an interface, by which the host's end of the engine's
	// Link and its other Bridged containers are reached.
	Bridged Network = "bridge"
)

// Resources are limits; a zero field is no limit.
type Resources struct {
	// CPU is the number of CPUs' worth of time the container may use.
	CPU float64
	// Memory is in bytes. Engines ask for no limit of swap: below the groups that Touchstone makes there is none, and a
	// program that exceeds the limit is killed on every host. Only a daemon of the user's that has its containers elsewhere can let
	// them swap.
	Memory int64
	// CPUSet are the CPUs on which the container may run, as the kernel spells them: "0-3,6".
	CPUSet string
}

// Exit is how a process ended. Signal is 0 if it exited by itself; runtimes that
// report a signal as 128+n are translated.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// OK tells whether the process ended by itself with code 0.
func (e Exit) OK() bool { return e == Exit{} }

// State is the state of a container as the OCI runtime specification names it.
type State string

// The states of a container.
const (
	Created State = "created"
	Running State = "running"
	Paused  State = "paused"
	Stopped State = "stopped"
)

// UnsupportedError says that a target cannot do something on this host.
type UnsupportedError struct {
	What   string // the capability, or the target
	Reason string
	Advice string // what to do about it, if anything
}

func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("%s: %s", e.What, e.Reason)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unsupported tells whether err says that something cannot work here, as opposed
// to something that went wrong.
func Unsupported(err error) bool {
	var u *UnsupportedError
	return errors.As(err, &u)
}
