package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// Trial is one execution of a benchmark on one target. Its methods and the methods of its parts may be called from
// several goroutines.
type Trial struct {
	Core
	Params             // of the benchmark
	Info   engine.Info // of the target's engine

	Images  Images
	Network Network
	Host    Host
	Storage Storage
	Cost    Cost
	Install Install
	Energy  Energy
	Details Details
	Latency Latency
	Pods    Pods
	Trace   Trace
}

// Core is the part of a trial that every benchmark uses.
type Core interface {
	// Require returns an *engine.UnsupportedError if the target or the host does not meet the needs. A benchmark calls
	// it only for requirements that do not exclude the whole trial: see Benchmark.Needs.
	Require(n Needs) error
	// Spec describes a container that runs a program of the benchmark's image, with the limits of the plan.
	Spec(argv ...string) engine.Spec
	// Create is the engine's Create as the timed phase "create". The runner deletes the container at the end of the
	// trial if it still exists.
	Create(ctx context.Context, spec engine.Spec) (engine.Container, Span, error)
	// Time runs call, which holds exactly one call of the engine, as a timed phase. The phase lasts from the start of
	// the call's first step to the end of its last one (see engine.Step), or as long as a call without steps. Each
	// named step becomes a phase of its own, and a sample of the metric with its name if the step works and the benchmark has Steps.
	Time(ctx context.Context, phase string, call func(context.Context) error) (Span, error)
	// Watch returns a writer for the output of a program.
	Watch() Watch
	// Sleep returns after the time d, and returns the time then, on the clock of Span. It is for loads that run for a time. It is
	// no stopwatch: Time times the calls of the engine.
	Sleep(ctx context.Context, d time.Duration) (moment time.Duration, err error)
	// Record adds a sample of one of the benchmark's metrics.
	Record(metric string, value float64)
	// Condition records a condition of the measurement under a name of one or two words.
	Condition(name, value string)
}

// Images makes, pulls and removes images. The errors of Fresh, Pull and Remove are *engine.UnsupportedErrors if the engine
// pulls no images.
type Images interface {
	// Fresh publishes an image that no engine has seen: the image of Core.Spec with one more layer, of size bytes that
	// do not compress. The runner withdraws it at the end of the trial.
	Fresh(ctx context.Context, size int64) (ref string, err error)
	// Pull and Remove are calls of the engine as the timed phases "pull" and "remove". The runner removes pulled images
	// that still exist at the end of the trial.
	Pull(ctx context.Context, ref string) (Span, error)
	Remove(ctx context.Context, ref string) (Span, error)
	// Minimal publishes an image for an architecture in Go's naming, and writes its file system to a directory. Its one
	// program, at the probe's path, ignores its arguments and exits with MinimalCode at once. The runner withdraws the image
	// at the end of the trial. It works with engines that pull no images too.
	Minimal(ctx context.Context, arch string) (Minimal, error)
}

// MinimalCode is the exit code of the program in a minimal image.
const MinimalCode = 42

// Minimal is an image with one program.
type Minimal struct {
	Rootfs string // a directory with the image's file system
	Ref    string // a reference for engines that pull
	// Emulator is the interpreter that the host's kernel starts for the program.
	Emulator Emulator
}

// Emulator is an interpreter that is registered with the host's kernel for programs of another architecture (binfmt_misc).
type Emulator struct {
	// Name is the name of the registration. It is empty if the kernel has none for the program, or if Unknown is set.
	Name string
	// Interpreter is its path.
	Interpreter string
	// Fixed is set if the kernel opened the interpreter at the registration (flag F). Otherwise containers find it only in
	// their own file systems.
	Fixed bool
	// Unknown is the reason why the registrations are not known; empty if they are.
	Unknown string
}

// Network connects containers with the host.
type Network interface {
	// Link returns the network of Bridged containers, or an *engine.UnsupportedError if the target has none.
	Link(ctx context.Context) (engine.Link, error)
	// CreateHost creates a process at the host's end of the target's Link, from the same root file system: the native
	// baseline does the same. Its cost is not part of the target's cost.
	CreateHost(ctx context.Context, spec engine.Spec) (engine.Container, error)
	// Dial connects to an address of the host network that the target's containers use.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Outward returns the network by which the target's containers reach other machines, or an *engine.UnsupportedError if none
	// leads out.
	Outward() (engine.Outward, error)
	// Remote starts a server on another machine, where touchstone peer runs. The error is the reason if that machine does not
	// answer, or serves another client.
	Remote(ctx context.Context, machine remote.Place, server remote.Server) (Remote, error)
}

// Remote is a server on another machine. touchstone peer there serves no other client until Close.
type Remote interface {
	// Server is the server's address, and Control the address of touchstone peer. Control accepts further connections that are
	// closed at once.
	Server() netip.AddrPort
	Control() netip.AddrPort
	// About describes the machine and the path to it as conditions of the trial.
	About() map[string]string
	// Watch returns a context that is cancelled if the server fails or the machine is lost before Close. The cause is the reason.
	Watch(ctx context.Context) (context.Context, context.CancelFunc)
	// Close returns when the server has ended. The error is the reason if it has not.
	Close() error
}

// Host runs processes of a trial outside the target.
type Host interface {
	// Create creates a bare process of the host, from the same root file system as the containers and beside them, in a
	// cgroup of its own. Its cost is not part of the target's cost.
	Create(ctx context.Context, spec engine.Spec) (engine.Container, error)
	// Control runs the probe outside of every container, with all rights of this program, and returns its standard output. The error is an
	// *engine.UnsupportedError if this run has no program on the host.
	Control(ctx context.Context, argv []string) (stdout []byte, err error)
}

// Storage holds files of a trial on the host.
type Storage interface {
	// Scratch creates an empty directory on the host, which the runner removes at the end of the trial. It returns an
	// *engine.UnsupportedError if the host has no such medium.
	Scratch(m Medium) (string, error)
	// DropCaches writes all dirty pages of the host back and drops its page cache. It must not be called in a timed
	// region. It returns an *engine.UnsupportedError if the user has not allowed it.
	DropCaches(ctx context.Context) error
}

// Cost is the cost of the trial to the host. Each method returns an *engine.UnsupportedError if the value is unknown here.
type Cost interface {
	// Usage is the cost of the target so far in this trial. Without cgroups it is unknown after CreateHost and Host.Create.
	Usage() (engine.Usage, error)
	// Throttled is the number of quota periods so far with throttled processes of the target.
	Throttled() (periods int64, err error)
	// CPU splits the CPU time of Usage by component, as far as it is known of single processes. The sum is less than
	// Usage by the cost of starting and ending processes. Only benchmarks with Components may call it. They call it
	// after Memory if they call both. If the value is unknown the run records the reason.
	CPU() (map[monitor.Component]time.Duration, error)
	// Processes are the target's living processes with their components, without its daemon, and Spent is the CPU time of processes so far. Both
	// separate one container of a trial from those that it creates later. The rules of CPU hold. The time is unknown
	// once one of the processes has exited.
	Processes() (map[int]monitor.Component, error)
	Spent(processes []int) (time.Duration, error)
	// Memory is the proportional set size of the target's live processes by component, in bytes. The rules of CPU hold.
	// It takes time and must not be called in a timed region.
	Memory() (map[monitor.Component]int64, error)
	// Census is Memory with its parts, and with the number of tasks.
	Census() (monitor.Census, error)
	// Host is the memory of the whole host. It takes time and must not be called in a timed region.
	Host() (HostMemory, error)
	// Tasks is the number of processes and threads that the host can still create.
	Tasks() (int64, error)
}

// HostMemory is the memory of the whole host in bytes, by the names of /proc/meminfo. The anonymous memory of this program itself counts as
// available and free, so that its own growth is no cost of a target.
type HostMemory map[string]int64

// Install is the installation of the target on the host. Each method returns an *engine.UnsupportedError if the value is unknown
// here.
type Install interface {
	// Footprint is the space that the target's programs take on the host's disk.
	Footprint() (footprint.Footprint, error)
	// HasDaemon reports whether a daemon serves the target, also while no container exists.
	HasDaemon() bool
	// DaemonMemory is the proportional set size of the daemon's processes, in bytes, and DaemonCPU is their CPU time so far. Only
	// benchmarks with Components may call DaemonMemory.
	DaemonMemory() (int64, error)
	DaemonCPU() (time.Duration, error)
}

// Energy is the energy that the host takes, with all its programs.
type Energy interface {
	// Source describes the gauge: "RAPL package-0".
	Source() string
	// Joules returns the energy since some moment before the trial. Only benchmarks with Needs.Energy may call it: the runner reads their
	// gauge at intervals too, because counters wrap around. It returns an *engine.UnsupportedError if the host has no gauge.
	Joules() (float64, error)
}

// Details keeps values beside the samples, for reports and other readers.
type Details interface {
	// Distribution keeps a histogram of one of the benchmark's metrics.
	Distribution(d result.Distribution)
	// Timeline keeps a quantity over the time of the trial. Its times are on the clock of Span.
	Timeline(l result.Timeline)
}

// Pods observes the stages of pods, which the API server, the kubelet and the programs report.
type Pods interface {
	// Observe returns the stages of one pod. The error is an *engine.UnsupportedError if the containers of the target have none.
	Observe() (Stages, error)
	// Ping sends the cheapest request to the API server as the timed phase "request".
	Ping(ctx context.Context) (Span, error)
}

// Stages are the stages of one pod so far.
type Stages interface {
	// Within returns a context for a call on the pod, which receives the stages.
	Within(ctx context.Context) context.Context
	// At is the first moment of a stage on the clock of Span. It is false for a stage that the engine has not reported.
	At(s engine.Stage) (moment time.Duration, ok bool)
}

// Latency takes many times of one operation in bounded memory. The times of a metric become a distribution of the trial, with the largest ones
// whole. From the first Sample on, Core.Time keeps no phases and takes no samples of steps.
type Latency interface {
	// Sample adds a time to a metric. It returns an error for a time that is negative or longer than a day.
	Sample(metric string, d time.Duration) error
	// Quantile is the time that a share q (0–1) of the metric's times does not exceed. It has three digits; the largest time, for 1, is exact.
	Quantile(metric string, q float64) time.Duration
	// Forget releases the memory for a container that the benchmark has deleted, and for its output.
	Forget(c engine.Container, output Watch)
}

// Trace counts the work of the target's processes from the begin of the trial on. Only a benchmark with Traced may use it. Where the machine cannot
// trace, the trial is skipped before its begin, with the reason and the remedy.
type Trace interface {
	// Begin makes the counts from now on belong to a step, also during calls of the engine.
	Begin(step string) error
	// Attach makes the tracer count functions of the kernel from now on, for a benchmark with Functions. It returns the number of observed
	// functions and the time that it took. The functions of the whole machine are slower then, so a benchmark sets up its containers before.
	Attach() (functions int, took time.Duration, err error)
	// Counts ends the trace. It returns the counts of the components in the steps of Begin, or the reason why they are not complete. The run keeps
	// these counts as a trace.
	Counts(components ...monitor.Component) ([]result.TraceCounts, error)
}

// Optional returns the optional interface T of an engine or a container, which a declared capability promises.
func Optional[T any](impl any, c engine.Capability) (T, error) {
	if optional, ok := impl.(T); ok {
		return optional, nil
	}
	var zero T
	return zero, fmt.Errorf("the engine declares the capability %q but does not implement it", c)
}

// Span is the time of a phase. Both ends count from the start of the trial on the host's monotonic clock.
type Span struct{ Start, End time.Duration }

// Length is the time from the start to the end.
func (s Span) Length() time.Duration { return s.End - s.Start }

// Seconds is the length in seconds.
func (s Span) Seconds() float64 { return s.Length().Seconds() }

// MaxOutput is the number of bytes that is kept of a program's output. A program that writes more fails the trial.
const MaxOutput = 1 << 20

// Watch is a writer that keeps the output of a program and notes when it arrives, on the clock of Span.
//
// Invariant host-clock: The container's clock is never compared with the host's: Watch reads the host's clock, and the probe reports rates and
// durations, never times.
type Watch interface {
	io.WriteCloser
	// FirstLine waits for the first line. It returns the line without its end, and the time of the first byte. The
	// error is io.ErrUnexpectedEOF if the output ends before the line does.
	FirstLine(ctx context.Context) (line string, moment time.Duration, err error)
	// Last returns the time of the last bytes; 0 before the first.
	Last() time.Duration
	// Ended waits for the end of the output.
	Ended(ctx context.Context) error
	// Bytes returns the output so far, at most MaxOutput bytes.
	Bytes() []byte
	// Endless lets the program write more than MaxOutput, for a program whose lines are read as they arrive. Bytes then returns the end of the
	// output. A single write must not be larger than half of MaxOutput.
	Endless()
}
