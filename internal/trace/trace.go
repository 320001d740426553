// Package trace counts what the processes of a target do, by BPF programs in the kernel: system calls, new processes and threads, and
// executed programs, by step of a trial and by component. It also gives the time of the threads, running, ready, and blocked by system call, and divides
// the time of each step among them.
//
// A count that is equal in every trial needs no statistics, and noise of the machine does not change it. The tracer slows down each system
// call, so timed trials run without it. Counts are added up in the kernel: nothing is sent to Touchstone for each event, and so nothing can be lost on the
// way. An event without a place in a table makes all counts of the trial void. Only the waits of threads are records, one each, because they must be
// cut at the steps; Touchstone reads them after the trial, and a wait without a place makes its times void.
//
// The processes of a target are found by descent: from Touchstone's own process and from the target's daemons, from the start of the tracer
// on. The work of a daemon belongs to the step of its time, also if another client caused it. Links and programs belong to
// file descriptors of this process, so the kernel removes them when it dies.
//
// The package needs Linux 5.8 with BTF. [Check] returns the reason why a machine cannot trace, with a remedy.
package trace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -cflags "-O2 -Wall -Wextra -Werror" bpf kernel/trace.c

// The numbers of trace.c for waits outside of system calls, and for calls of 32-bit programs.
const (
	callOutside = 0xfffffffb
	callCompat  = 0xfffffffd
)

// noStep is the number of trace.c for a thread without a step.
const noStep = 0xffffffff

// The indexes of trace.c for calls without a number of the 64-bit table.
const (
	indexCompat  = 510
	indexUnknown = 511
)

// compatFlags are the flags of 32-bit programs in the kernel's thread_info. x86 has a field of its own, and the flag of RISC-V depends on the version.
var compatFlags = map[string]uint64{"arm64": 1 << 22}

// Tracer counts from Start to Stop.
type Tracer struct {
	target   monitor.Target
	hasPaths bool // the paths of opened files are recorded
	objects  bpfObjects
	links    []link.Link
	steps    []string

	timeline *result.TraceTimeline

	boundaries []boundary // of the steps
	end        uint64     // of the trace, by the clock of the kernel's programs
	isBare     bool       // only processes and programs are observed: no system calls and no times
}

// Start loads the programs into the kernel and attaches them. The error is an *Error.
func Start(target monitor.Target) (*Tracer, error) { return begin(&Tracer{target: target}) }

// StartWithPaths is Start with the paths of all opened files in the counts.
func StartWithPaths(target monitor.Target) (*Tracer, error) {
	return begin(&Tracer{target: target, hasPaths: true})
}

func begin(t *Tracer) (*Tracer, error) {
	if err := t.start(); err != nil {
		_ = t.close() // the cause is more important
		return nil, thisMachine().explain(err)
	}
	return t, nil
}

// Check returns an *Error if this machine cannot trace.
func Check() error {
	t, err := Start(monitor.Target{})
	if err != nil {
		return err
	}
	return t.close()
}

func (t *Tracer) start() error {
	if err := thisMachine().check(); err != nil {
		return err
	}
	spec, err := loadBpf()
	if err != nil {
		return err
	}
	hasPaths := uint32(0)
	if t.hasPaths {
		hasPaths = 1
	} else {
		spec.Maps[bpfMapPaths].MaxEntries = uint32(os.Getpagesize())
	}
	for name, value := range map[string]any{
		bpfVarCompatFlag: compatFlags[runtime.GOARCH], bpfVarHasPaths: hasPaths, bpfVarPrefixes: prefixes(), bpfVarWatched: watched(),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return err
		}
	}
	restore, err := raiseMemoryLock()
	if err != nil {
		return err
	}
	err = spec.LoadAndAssign(&t.objects, nil)
	restore()
	if err != nil {
		return err
	}
	turns := slices.Repeat([]bpfTurn{{Step: noStep}}, ebpf.MustPossibleCPU())
	if err := t.objects.Turns.Put(uint32(0), turns); err != nil {
		return fmt.Errorf("set the threads of the CPUs: %w", err)
	}
	// Touchstone's own process is program 0, and the daemons follow.
	for i, pid := range slices.Concat([]int{os.Getpid()}, t.target.Daemons) {
		if err := t.objects.Processes.Put(uint32(pid), uint64(i)); err != nil {
			return fmt.Errorf("observe process %d: %w", pid, err)
		}
	}
	for name, program := range t.loaded() {
		l, err := attach(name, program)
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s: %w", name, err)
		}
		t.links = append(t.links, l)
	}
	for i, pid := range t.target.Daemons {
		if err := t.observeThreads(pid, uint64(i+1)); err != nil {
			return fmt.Errorf("observe the threads of process %d: %w", pid, err)
		}
	}
	return t.Step("")
}

// attach attaches a program to a tracepoint.
func attach(name string, program *ebpf.Program) (link.Link, error) {
	if program.Type() == ebpf.Tracing {
		return link.AttachTracing(link.TracingOptions{Program: program})
	}
	return link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
}

// loaded are the programs in the kernel, by the tracepoints that they are for.
func (t *Tracer) loaded() map[string]*ebpf.Program {
	programs := map[string]*ebpf.Program{
		"sched_process_fork": t.objects.SchedProcessFork, "sched_process_exec": t.objects.SchedProcessExec, "sched_process_exit": t.objects.SchedProcessExit,
	}
	if !t.isBare {
		maps.Copy(programs, map[string]*ebpf.Program{
			"sys_enter": t.objects.SysEnter, "sched_switch": t.objects.SchedSwitch, "sched_wakeup": t.objects.SchedWakeup,
		})
	}
	return programs
}

// Step makes the counts from now on belong to a step. The empty name stands for the time outside of all steps.
func (t *Tracer) Step(name string) error {
	i := slices.Index(t.steps, name)
	if i < 0 {
		i, t.steps = len(t.steps), append(t.steps, name)
	}
	moment, err := clock()
	if err == nil {
		err = t.objects.Step.Set(uint32(i))
	}
	if err != nil {
		return fmt.Errorf("begin step %q of the trace: %w", name, err)
	}
	t.boundaries = append(t.boundaries, boundary{moment, uint32(i)})
	return nil
}

// Stop detaches the programs, removes them from the kernel, and returns the counts: the steps in the order of their first begin, and the components of
// each in display order.
func (t *Tracer) Stop() (counts []result.TraceCounts, err error) {
	t.end, err = clock()
	err = errors.Join(err, t.detach())
	if err == nil {
		err = t.complete()
	}
	if err == nil {
		counts, err = t.counts()
	}
	return counts, errors.Join(err, t.close())
}

func (t *Tracer) detach() error {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	t.links = nil
	return errors.Join(errs...)
}

func (t *Tracer) close() error { return errors.Join(t.detach(), t.objects.Close()) }

// complete returns an error if an event is missing from the tables.
func (t *Tracer) complete() error {
	var count uint64
	if err := t.objects.Lost.Get(&count); err != nil {
		return fmt.Errorf("read the lost events of the trace: %w", err)
	}
	for _, p := range t.loaded() {
		stats, err := p.Stats()
		if err != nil {
			return fmt.Errorf("read the missed events of the trace: %w", err)
		}
		count += stats.RecursionMisses
	}
	if count > 0 {
		return fmt.Errorf("%d events are missing from the trace, so it has no counts: the trial has more processes or programs than the tracer has places for; trace smaller parameters", count)
	}
	return nil
}

// program is a program of trace.c with its id.
type program struct {
	id uint64
	bpfProgram
}

// name is the name of the program's file, as the kernel cuts it.
func (p *program) name() string { return text(p.Name[:]) }

// text is a string of C.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// programs lists the executed programs in the order of their execve, which puts parents before children.
func (t *Tracer) programs() (list []program, err error) {
	var p program
	for entries := t.objects.Programs.Iterate(); ; {
		if !entries.Next(&p.id, &p.bpfProgram) {
			slices.SortFunc(list, func(a, b program) int { return cmp.Compare(a.id, b.id) })
			return list, entries.Err()
		}
		list = append(list, p)
	}
}

// components returns the component of each program, by id.
func (t *Tracer) components(list []program) map[uint64]monitor.Component {
	components := map[uint64]monitor.Component{}
	for i := range t.target.Daemons {
		components[uint64(i+1)] = monitor.Daemon
	}
	places := map[uint64]int{}
	programs := make([]monitor.Program, len(list))
	for i := range list {
		p := &list[i]
		places[p.id] = i
		parent, ok := places[p.Parent]
		switch {
		case components[p.Parent] == monitor.Daemon:
			parent = monitor.DaemonParent
		case !ok:
			parent = monitor.NoParent
		}
		programs[i] = monitor.Program{
			Parent: parent, Name: p.name(), Argument: filepath.Base(text(p.Argument[:])),
			Device: unix.Mkdev(p.Device>>20, p.Device&0xfffff), Inode: p.Inode, Nested: p.Level > p.ParentLevel,
		}
	}
	for i, c := range t.target.Classify(programs) {
		components[list[i].id] = c
	}
	return components
}

// raiseMemoryLock lets this process load programs and tables into a kernel before 5.11, which counts them as locked memory. restore puts the
// limit back, because children inherit it.
func raiseMemoryLock() (restore func(), err error) {
	if !thisMachine().before(5, 11) {
		return func() {}, nil
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return nil, fmt.Errorf("read the limit of locked memory: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		return nil, fmt.Errorf("raise the limit of locked memory (ulimit -l): %w", err)
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit) }, nil
}
