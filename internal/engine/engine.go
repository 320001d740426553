// Package engine is the contract between a measured target and the code that drives it.
//
// An [Engine] is an open target: one runtime, driven in one way. It creates containers. A [Container] goes
// through start, kill, wait and delete. [Engine.Supports] reports whether a capability works on the target. A
// capability that comes with methods (exec, pause, update) has an optional interface, which is present whenever
// Supports returns nil.
//
// The contract keeps measurements honest. A method does one thing, waits for an event instead of polling, and
// returns when the thing is done. No method keeps time. A method whose context is cancelled returns soon, and
// Delete can remove everything that the call was about to make. Errors carry the runtime's own message.
//
// The packages native, oci, cri, docker, podman and fake implement the contract. Package enginetest is their
// conformance suite, and engines is the list of them. Package runtimes finds the low-level runtimes that engines
// share, and managed runs private daemons.
package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Engine drives one target. Its methods may be called from several goroutines.
type Engine interface {
	// Info describes the target. It does not change during a run.
	Info() Info
	// Supports returns nil if the capability works on this target and host, and an *UnsupportedError with the
	// reason if not.
	Supports(Capability) error
	// Create makes a container whose process does not run yet: a prepared cgroup, namespaces and root file
	// system, as the OCI runtime specification defines it. If Create fails or is cancelled, it leaves nothing
	// behind.
	Create(ctx context.Context, spec Spec) (Container, error)
	// Close removes everything that the engine itself set up. All containers must be deleted before. It is
	// idempotent.
	Close() error
}

// CgroupPlacer is an Engine that can start all its processes on the host (runtime binary, sandbox, containers) below
// a given cgroup, which separates their cost from the rest of the machine.
type CgroupPlacer interface {
	// SetCgroupParent makes group the parent of all processes that start from now on. It must not be called
	// while containers exist.
	SetCgroupParent(group string) error
}

// Accountant is an Engine that counts the cost of its host processes itself, also where it has no cgroup (rootless).
type Accountant interface {
	// Usage returns the total of all processes that have exited since the engine was opened.
	Usage() Usage
}

// Usage is the cost of processes to the host.
type Usage struct {
	// CPU is user and system time.
	CPU time.Duration
	// PeakMemory is the highest sum of memory that was charged to the processes at once, in bytes; 0 if it is
	// not known.
	PeakMemory int64
	// IncludesDaemon reports that CPU contains the daemon's share, which a container's limits do not bind.
	IncludesDaemon bool
}

// Simulation is an Engine without processes on this host.
type Simulation interface {
	// Census is the imagined processes of the containers that exist.
	Census() monitor.Census
	// Meminfo is the imagined memory of the host, in bytes, by the names of /proc/meminfo.
	Meminfo() map[string]int64
}

// DaemonBacked is an Engine whose containers are made by a daemon that was running before. The processes that the
// daemon starts for a container (shims, runtime calls, network plug-ins) run in the daemon's cgroup, and not below
// the one that SetCgroupParent names.
type DaemonBacked interface {
	Daemon() Daemon
}

// Pinger is an Engine that sends requests to a daemon.
type Pinger interface {
	// Ping sends the cheapest request. The daemon answers it without other work, so its time is the time of the client, the socket and the
	// daemon's server.
	Ping(ctx context.Context) error
}

// Recoverer is an Engine with a daemon of the run that may hang.
type Recoverer interface {
	// Recover follows a timeout, when no container is needed any more. It kills a daemon that does not answer and starts it once more. It
	// returns whether it has killed one.
	Recover(ctx context.Context) (isKilled bool, err error)
}

// Daemon is the set of processes behind a DaemonBacked engine.
type Daemon struct {
	// PIDs are the processes that outlive containers.
	PIDs []int
	// Cgroup holds the daemon and everything that it starts. It is nil if the daemon shares its cgroup with
	// others, or if its cgroup is not known.
	Cgroup *cgroup.Group
}

// Installed is an Engine whose programs are files of this host.
type Installed interface {
	// Programs returns the absolute paths of all programs that the target needs: the engine, its helpers, and the runtime.
	// It is empty for a target that needs none. The error is an *UnsupportedError if the programs are unknown.
	Programs() ([]string, error)
}

// Controller is an engine that also runs the probe outside of every container. It is the control of a benchmark that tries what containers should
// not be able to do.
type Controller interface {
	// Control runs the probe with arguments as a process of this program, with all its rights, and returns the standard output.
	Control(ctx context.Context, args []string) (stdout []byte, err error)
}

// Dialer is an Engine whose containers have another host network than this process, such as a daemon's own
// network namespace.
type Dialer interface {
	// Dial connects to an address of the network that containers with HostNet have.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Networker is an Engine whose containers can be Bridged.
type Networker interface {
	// Link describes the network that Bridged containers share with each other and with the host's end. It makes
	// the parts that are missing. The network does not change while the engine is open. The error is an
	// *UnsupportedError if the host cannot have the network.
	Link(ctx context.Context) (Link, error)
}

// Link is a network between containers and the host.
type Link struct {
	// Namespace is the path of the network namespace of the host's end. It is empty for the namespace of this
	// process.
	Namespace string
	// Host is the address of the host's end, as containers reach it.
	Host netip.Addr
	// About describes the path of the packets for the record: "interface", "mtu", "offloads" and the like. All
	// calls return the same map, which must not be modified.
	About map[string]string
}

// Outgoing is an Engine whose containers may reach other machines.
type Outgoing interface {
	// Outward returns the network of such containers. The error is an *UnsupportedError if no network leads out of this machine.
	Outward() (Outward, error)
}

// Outward is a way to other machines.
type Outward struct {
	// Network is Bridged for a network of the engine's own that leads out, and otherwise HostNet.
	Network Network
	// About describes it for the record.
	About string
}

// NoWayOut is the error of Outgoing for containers in a network that exists only for the run. The advice names the alternative.
func NoWayOut(advice string) error {
	return &UnsupportedError{
		What: "a network to other machines", Reason: "the network of these containers exists only for the run, and no packet leaves it",
		Advice: advice,
	}
}

// Puller is an Engine that pulls images from a registry.
type Puller interface {
	// Pull fetches an image that is not there yet, and unpacks it.
	Pull(ctx context.Context, ref string) error
	// RemoveImage removes an image with its unpacked layers. It is idempotent.
	RemoveImage(ctx context.Context, ref string) error
}

// Container is one container. Its ID is unique on the host and contains the run's ID. Start, Kill, Wait and State
// refer to its first process.
type Container interface {
	ID() string
	// Start runs the process of a created container.
	Start(ctx context.Context) error
	// Kill sends a signal to the process. Killing a process that has exited is no error.
	Kill(ctx context.Context, signal syscall.Signal) error
	// Wait returns when the process has exited. It can be called again, and by several goroutines. A non-zero
	// exit code is no error of Wait.
	Wait(ctx context.Context) (Exit, error)
	// State queries the runtime.
	State(ctx context.Context) (State, error)
	// Delete removes the container by force, whatever its state, with everything that belongs to it. It returns
	// when all output has been written to the Spec's writers. It is idempotent.
	Delete(ctx context.Context) error
}

// Execer is a container that can run further processes. Exec returns when the process has exited and its output has been
// written.
type Execer interface {
	Exec(ctx context.Context, p Process) (Exit, error)
}

// Pauser is a container that can be frozen and thawed. Each call returns when the container is in the new state. A confirmation
// of the state follows the last step of the call.
type Pauser interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Updater is a container whose limits can be changed while it runs.
type Updater interface {
	Update(ctx context.Context, r Resources) error
}

// Limited is a container whose limits can be read on the host, after whoever has set them. A benchmark checks an update by it.
type Limited interface {
	// Limits reads the limits of the cgroup that holds the container's first process. It returns an *UnsupportedError if the host
	// does not see that cgroup or does not limit the container by it.
	Limits(ctx context.Context) (Resources, error)
}

// Traced is a container that can be searched for after its deletion. It proves that Delete has deleted it.
type Traced interface {
	// Traces lists everything of a deleted container that still exists: in the engine, in the runtime, and on the host as state
	// directory, mount, cgroup or process. It also lists the objects that the runtime left and Delete removed in its place, unless
	// runtimes of this kind are known to leave them. It must not be called in a timed region.
	Traces(ctx context.Context) ([]string, error)
}

// Meter is a container whose resource use the engine reports by its own interface, as a kubelet or a dashboard
// queries it every few seconds.
type Meter interface {
	Stats(ctx context.Context) (Stats, error)
}

// Stats is the resource use of a container, as its engine reports it.
type Stats struct {
	// CPU is the time that the container's processes have used so far.
	CPU time.Duration
	// Memory is the memory charged to them now, in bytes, as the engine counts it.
	Memory int64
}

// Addressed is a container that is Bridged.
type Addressed interface {
	// Address returns the container's address in the network of its engine's Link. The container has been
	// started.
	Address(ctx context.Context) (netip.Addr, error)
}

// Isolation is the boundary between a container and the host's kernel.
type Isolation string

// The kinds of isolation.
const (
	NoIsolation  Isolation = "none"
	SharedKernel Isolation = "shared kernel"
	UserKernel   Isolation = "user-space kernel"
	VM           Isolation = "virtual machine"
	Unknown      Isolation = "not known"
)

// Info describes an engine's target.
type Info struct {
	Target  target.Target
	Binary  string // path of the runtime's binary, empty for native
	Version string // as the binary prints it, on one line
	Isolation
	// Cgroup is the hierarchy that limits and accounts containers: the mode of the host ("v1", "hybrid",
	// "v2"), or "none" with the reason in Notes.
	Cgroup   string
	Rootless bool
	// Overhead is added to the limits of a container in the host's cgroups, for the container's virtual machine. It is zero
	// without a virtual machine, and if the engine limits none on the host.
	Overhead Resources
	// SmallGuest is the remedy for a program that was killed because its virtual machine has too little memory. It is empty without a
	// virtual machine.
	SmallGuest string
	// Conditions are conditions of all trials of the target, by name. They follow from the settings of the plan.
	Conditions map[string]string
	// Caveat is a reason to trust the numbers less that the user has not chosen, such as another daemon than the user's; empty without one.
	// Reports show it once.
	Caveat string
	// Notes lists the settings that were made for this target on this host, and known differences from other
	// targets.
	Notes []string
}

// Spec describes a container. The same Spec gives the same program, root file system and arguments on every target.
type Spec struct {
	// ID is unique on the host and begins with "touchstone-" and the run's ID.
	ID string
	// Rootfs is the directory of the container's root, for engines that take one. Containers share it, and none
	// writes to it.
	Rootfs string
	// Image is the reference of an image with the same file system, for engines that pull.
	Image string
	// Process is the container's first process.
	Process Process
	// Writable lets the process write to its root file system. The writes go to a layer that is deleted with the
	// container: a layer of the engine's snapshotter, or an overlay on the run's disk where the engine has none.
	// Native has no layers, and offers a directory of the run's disk at /data instead. Without Writable the root
	// is read-only.
	Writable bool
	// Mounts are mounts in addition to /proc, /dev, /sys and /tmp.
	Mounts []Mount
	// Network is NoNetwork unless set.
	Network Network
	// Join is the path of a network namespace for the process, instead of Network. Only native supports it. The programs at the host's end of a Link use it.
	Join string
	// Resources are the limits at creation.
	Resources Resources
}

// Process is a program to run in a container, as root, in the root directory.
type Process struct {
	Args []string
	Env  []string
	// Stdout and Stderr receive the output; nil discards it. One goroutine writes to each of them, in order, as
	// the bytes come. It closes a writer that is an io.Closer after the last byte.
	Stdout, Stderr io.Writer
	// OneLine is set if only the first line of Stdout is needed. An engine may then stop reading after it. A kubelet needs a watch of files for each
	// log that is followed, and has few of them.
	OneLine bool
}

// CloseOutput closes the writers of p that are io.Closers.
func (p Process) CloseOutput() {
	for _, w := range []io.Writer{p.Stdout, p.Stderr} {
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// Mount binds a directory of the host into a container. Without a Source it is an empty file system in memory, which
// the runtime makes for the container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Network is the network of a container.
type Network string

// The networks.
const (
	NoNetwork Network = ""     // a namespace of its own, with the loopback interface and the engine's defaults
	HostNet   Network = "host" // the host's own
	// Bridged is a namespace of the container's own. Its interface reaches the host's end of the engine's Link and
	// the other Bridged containers.
	Bridged Network = "bridge"
)

// Resources are limits; a zero field is no limit.
type Resources struct {
	// CPU is the number of CPUs' worth of time the container may use.
	CPU float64
	// Memory is in bytes. Engines set no limit of swap. The cgroups that Touchstone makes have no swap, so a
	// program that exceeds the limit is killed on every host. Only a user's daemon that puts its containers
	// elsewhere can let them swap.
	Memory int64
	// PIDs is the number of processes and threads that may exist at once. A sandbox's own threads count. Over CRI it is the
	// limit of the pod, as a kubelet sets it, and the pause process counts.
	PIDs int64
	// CPUSet lists the CPUs that the container may use, in the kernel's notation: "0-3,6".
	CPUSet string
}

// CPUPeriod is the accounting period of CPU limits in microseconds, the kernel's default.
const CPUPeriod = 100_000

// CPUQuota is the CPU time of CPU in a CPUPeriod, in microseconds.
func (r Resources) CPUQuota() int64 { return int64(math.Round(r.CPU * CPUPeriod)) }

// Exit is the result of a process. Signal is 0 if the process exited by itself. Runtimes report a signal as exit
// code 128+n, which engines translate.
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

// OK reports whether the process exited by itself with code 0.
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
