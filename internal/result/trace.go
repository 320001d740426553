package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Trace is a trial under a tracer, which counts the work of the target's processes. It comes after the timed trials and has no samples: a
// tracer makes each system call slower.
type Trace struct {
	// Seq counts the traces of a run from 1 in the order of their execution.
	Seq int `json:"seq"`
	Cell
	Status Status `json:"status"`
	// Reason is the cause if the trace has no counts, with a remedy if one is known.
	Reason string `json:"reason,omitempty"`
	// Started is wall-clock time for readers; no value is computed from it.
	Started time.Time `json:"started"`
	// Elapsed is the length of the whole trial with its set-up and clean-up.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Phases are the timed regions under the tracer. No timed trial has such times.
	Phases []Phase       `json:"phases,omitempty"`
	Counts []TraceCounts `json:"counts,omitempty"`
	// Timeline is nil if the trace has no times, and if its benchmark chooses the steps.
	Timeline *TraceTimeline `json:"timeline,omitempty"`
}

// OfFunctions reports whether the trace counts functions of the kernel, and no system calls.
func (t *Trace) OfFunctions() bool {
	return slices.ContainsFunc(t.Counts, func(c TraceCounts) bool { return len(c.Functions) > 0 })
}

// TraceCounts counts the work of the processes of a component in a step of a trace. Steps are in the order of their begin.
type TraceCounts struct {
	// Step is the name of a phase, or "phase/Step". It is empty for the time outside of all calls of the engine.
	Step string `json:"step,omitempty"`
	// Component is a part of the target, such as "runtime" or "shim".
	Component string `json:"component"`
	// Calls counts system calls by name.
	Calls map[string]int64 `json:"calls,omitempty"`
	// Processes and Threads count the new ones.
	Processes int64 `json:"processes,omitempty"`
	Threads   int64 `json:"threads,omitempty"`
	// Programs counts executed programs by name, up to 15 bytes of it.
	Programs map[string]int64 `json:"programs,omitempty"`
	// Faults counts the page faults of the threads, also those in system calls.
	Faults int64 `json:"faults,omitempty"`
	// BytesRead and BytesWritten are the results of read, write and their family, on files, pipes and sockets. Messages have no part in them.
	BytesRead    int64 `json:"bytes_read,omitempty"`
	BytesWritten int64 `json:"bytes_written,omitempty"`
	// Opens counts the attempts to open a file by the directory that begins its path, or by OpensOther and its like.
	Opens map[string]int64 `json:"opens,omitempty"`
	// Paths counts the attempts to open a file by its path, up to 251 bytes of it. It is nil unless the user asks for paths.
	Paths map[string]int64 `json:"paths,omitempty"`
	// CgroupWrites counts writes to files of cgroups, and NetlinkMessages the messages to the kernel by netlink sockets.
	CgroupWrites    int64 `json:"cgroup_writes,omitempty"`
	NetlinkMessages int64 `json:"netlink_messages,omitempty"`
	// Switches counts the waits that blocked a thread, and Preemptions the losses of a CPU, by the step of their begin.
	Switches    int64 `json:"switches,omitempty"`
	Preemptions int64 `json:"preemptions,omitempty"`
	// Running is the time of threads on a CPU, with the tracer's own work, and Queued the time in the run queue: ready, without a CPU. Threads side
	// by side count several times. A trace with more waits than its buffer has places for has no times.
	Running time.Duration `json:"running_ns,omitempty"`
	Queued  time.Duration `json:"queued_ns,omitempty"`
	// Blocked is the time in other waits by system call, and outside of calls. Threads side by side count several times.
	Blocked map[string]time.Duration `json:"blocked_ns,omitempty"`
	// Wall is the component's part of the step's own time: WallRunning, WallQueue, and waits by system call. No moment counts twice, so all parts
	// of a step are at most its length.
	Wall map[string]time.Duration `json:"wall_ns,omitempty"`
	// Functions counts the entries of functions of the kernel, by "subsystem/name". Only a benchmark that observes them has it.
	Functions map[string]int64 `json:"functions,omitempty"`
}

// The names in Blocked and Wall that are no system calls.
const (
	// OutsideCalls stands for a wait outside of system calls, mostly for a page fault.
	OutsideCalls = "(program)"
	WallRunning  = "running"
	WallQueue    = "run queue"
)

// The names in Opens that are no directories.
const (
	OpensState    = "(touchstone)" // the directories of Touchstone's runs
	OpensOther    = "(other)"
	OpensRelative = "(relative)" // to a descriptor, or to the working directory
)

// TimeCause is the cause why a step takes time.
type TimeCause string

// The causes.
const (
	CauseRunning TimeCause = "running"
	CauseQueue   TimeCause = "run queue"     // ready, without a CPU
	CauseDisk    TimeCause = "disk"          // the fsync family
	CauseSleep   TimeCause = "sleep"         // nanosleep
	CauseFault   TimeCause = "page fault"    // outside of system calls
	CauseCall    TimeCause = "other call"    // in the kernel, as in mount
	CauseFutex   TimeCause = "futex"         // another thread
	CauseChild   TimeCause = "child"         // the exit or the execve of a child
	CauseRead    TimeCause = "read or write" // of a file, a file of the kernel, a pipe or a socket: the call does not distinguish them
	CausePeer    TimeCause = "peer"          // a message or a connection
	CauseSignal  TimeCause = "signal"
)

// CauseOf returns the cause of a name in TraceCounts.Wall, as far as the system call decides it.
func CauseOf(name string) TimeCause {
	switch name {
	case WallRunning:
		return CauseRunning
	case WallQueue:
		return CauseQueue
	case OutsideCalls:
		return CauseFault
	case "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync":
		return CauseDisk
	case "nanosleep", "clock_nanosleep":
		return CauseSleep
	case "futex", "futex_wait", "futex_waitv":
		return CauseFutex
	case "wait4", "waitid", "vfork", "clone", "clone3":
		return CauseChild
	case "read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "splice", "tee", "sendfile", "copy_file_range":
		return CauseRead
	case "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept", "accept4", "connect",
		"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2":
		return CausePeer
	case "pause", "rt_sigsuspend", "rt_sigtimedwait":
		return CauseSignal
	default:
		return CauseCall
	}
}

// Passive reports whether a wait of this cause mostly is one for another thread of the target, whose own state is the reason then.
func (c TimeCause) Passive() bool {
	switch c {
	case CauseFutex, CauseChild, CauseRead, CausePeer, CauseSignal:
		return true
	default:
		return false
	}
}

// Limits on a trace.
const (
	// MaxTraceCounts is the largest number of steps and components of a trace.
	MaxTraceCounts = 10_000
	// MaxTraceNames is the largest number of system calls, of programs, and of functions, of a component in a step.
	MaxTraceNames = 10_000
)

// ValidateTrace refuses a trace that is unfit for r, like ValidateTrial.
func (r *Run) ValidateTrace(t *Trace) error {
	trial := t.trial()
	err := r.validateTrial(&trial)
	if err == nil {
		err = t.validateCounts()
	}
	if err == nil && t.Timeline != nil {
		if err = t.Timeline.validate(); err != nil {
			err = fmt.Errorf("the timeline: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("trace %d (%s on %s): %w", t.Seq, t.Benchmark, t.Target, err)
	}
	return nil
}

// trial is the part of a trace that trials also have.
func (t *Trace) trial() Trial {
	return Trial{Seq: t.Seq, Cell: t.Cell, Status: t.Status, Reason: t.Reason, Started: t.Started, Elapsed: t.Elapsed, Phases: t.Phases}
}

func (t *Trace) validateCounts() error {
	switch {
	case t.Status != OK && len(t.Counts) > 0:
		return fmt.Errorf("it has counts although its status is %s; only traces with status ok have counts", t.Status)
	case t.Status != OK && t.Timeline != nil:
		return fmt.Errorf("it has a timeline although its status is %s; only traces with status ok have one", t.Status)
	case len(t.Counts) > MaxTraceCounts:
		return fmt.Errorf("it has counts of %d steps and components; %d are allowed", len(t.Counts), MaxTraceCounts)
	}
	for _, c := range t.Counts {
		if err := c.validate(); err != nil {
			return fmt.Errorf("the counts of %.50q in step %.50q: %w", c.Component, c.Step, err)
		}
	}
	return nil
}

func (c *TraceCounts) validate() error {
	if c.Component == "" || c.Component != ConditionText(c.Component) || c.Step != ConditionText(c.Step) {
		return errors.New("the step and the component must be printable text on one line")
	}
	if min(c.Processes, c.Threads, c.Switches, c.Preemptions, c.Faults, c.BytesRead, c.BytesWritten, c.CgroupWrites, c.NetlinkMessages) < 0 {
		return errors.New("a count is negative")
	}
	if err := c.validateTimes(); err != nil {
		return err
	}
	for _, counts := range []map[string]int64{c.Calls, c.Programs, c.Opens, c.Paths, c.Functions} {
		if len(counts) > MaxTraceNames {
			return fmt.Errorf("it has %d names; %d are allowed", len(counts), MaxTraceNames)
		}
		for name, n := range counts {
			if name == "" || name != ConditionText(name) || n < 1 {
				return fmt.Errorf("the name %.50q must be printable text on one line, and its count %d above 0", name, n)
			}
		}
	}
	return nil
}

func (c *TraceCounts) validateTimes() error {
	if min(c.Running, c.Queued) < 0 {
		return errors.New("a time is negative")
	}
	for _, times := range []map[string]time.Duration{c.Blocked, c.Wall} {
		if n := len(times); n > MaxTraceNames {
			return fmt.Errorf("it has times of %d system calls; %d are allowed", n, MaxTraceNames)
		}
		for name, length := range times {
			if name == "" || name != ConditionText(name) || length < 0 {
				return fmt.Errorf("the name %.50q of a time must be printable text on one line, and the time %v not negative", name, length)
			}
		}
	}
	return nil
}

// checkNextTrace refuses a trace that does not follow the trace last of the run.
func (r *Run) checkNextTrace(t *Trace, last int) error {
	trial := t.trial()
	err := r.ValidateTrace(t)
	if err == nil && t.Seq <= last {
		err = fmt.Errorf("trace %d follows trace %d; traces must be in the order of their execution, without repetition", t.Seq, last)
	}
	if err == nil {
		err = trial.validateText()
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", r.ID, err)
	}
	return nil
}

// Canonical is Run.Canonical for one trace.
func (t Trace) Canonical() Trace {
	t.Started = t.Started.UTC()
	return t
}

// WithoutTexts is Run.WithoutTexts for one trace.
func (t Trace) WithoutTexts() Trace { return t.withTexts(func(string) string { return "" }) }

// withTexts returns a trace with a changed reason and changed paths. An empty path is left out.
func (t Trace) withTexts(change func(string) string) Trace {
	t.Reason = change(t.Reason)
	t.Counts = slices.Clone(t.Counts)
	for i := range t.Counts {
		c := &t.Counts[i]
		var paths map[string]int64
		for path, number := range c.Paths {
			if path = change(path); path == "" {
				continue
			}
			if paths == nil {
				paths = map[string]int64{}
			}
			paths[path] += number
		}
		c.Paths = paths
	}
	return t
}

// Trace returns a trace without the values in texts of programs.
func (h Hider) Trace(t Trace) Trace { return t.withTexts(h.Text) }

// readTrace reads a trace of a document.
func readTrace(s *stream) (t Trace, err error) {
	err = s.object("runs.traces", &t, map[string]func() error{
		"phases": func() error { return elements(s, "runs.traces.phases", &t.Phases, maxEntries, nil) },
		"counts": func() error { return elements(s, "runs.traces.counts", &t.Counts, MaxTraceCounts, nil) },
	}, nil)
	return t, err
}

// canonicalTraces returns the traces in their canonical form; nil without one.
func canonicalTraces(traces []Trace) []Trace {
	traces = slices.Clone(traces)
	for i := range traces {
		traces[i] = traces[i].Canonical()
	}
	return traces
}
