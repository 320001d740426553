package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/result"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -cflags "-O2 -Wall -Wextra -Werror" functions kernel/functions.c

// The reasons why a kernel traces no functions of its own.
const (
	NoTracefs        Reason = "no tracefs"         // it is not mounted
	NoFunctionTracer Reason = "no function tracer" // the kernel was built without it
	NoManyProbes     Reason = "no fprobe"          // the kernel attaches no program to many functions
)

// CheckFunctions returns an *Error if the kernel does not trace its functions for this process. It only reads: it attaches nothing.
func CheckFunctions() error {
	_, err := thisMachine().sites()
	return err
}

// sites lists the functions to observe. The error is an *Error.
func (m machine) sites() (*sites, error) {
	dir, err := m.tracefs()
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, err
	}
	if !slices.Contains(strings.Fields(m.read(filepath.Join(dir, "available_tracers"))), "function") {
		return nil, &Error{NoFunctionTracer, "the kernel " + m.release + " has no function tracer", "use a kernel with CONFIG_FUNCTION_TRACER=y", unix.ENOSYS}
	}
	if !strings.Contains(m.read(types), "\x00"+manyProbes+"\x00") {
		return nil, &Error{NoManyProbes, "the kernel " + m.release + " attaches no program to many functions at once", "use a kernel with CONFIG_FPROBE=y and CONFIG_BPF_EVENTS=y", unix.ENOSYS}
	}
	list := filepath.Join(dir, "available_filter_functions_addrs")
	text, err := os.ReadFile(filepath.Join(m.root, list))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{OldKernel, "the kernel " + m.release + " does not list the addresses of its functions: /" + list + " does not exist", "use Linux 6.5 or later", err}
	case errors.Is(err, unix.EPERM):
		return nil, &Error{Lockdown, fmt.Sprintf("the kernel refuses its function tracer: /%s: %v, with lockdown %q", list, unix.EPERM, strings.TrimSpace(m.read("sys/kernel/security/lockdown"))), "boot a kernel without lockdown and without a filter of tracefs", err}
	case errors.Is(err, fs.ErrPermission):
		return nil, &Error{NoCapability, "this process may not read /" + list, refusal.Rights("run as root"), err}
	case err != nil:
		return nil, &Error{Unexplained, fmt.Sprintf("the function tracer of the kernel %s cannot be read: %v", m.release, err), refusal.Forbidden, err}
	}
	s, err := parseSites(string(text))
	if err != nil {
		return nil, &Error{Unexplained, fmt.Sprintf("read /%s: %v", list, err), refusal.Forbidden, err}
	}
	return s, nil
}

// manyProbes is the function of the kernel that attaches a program to many functions. The description of the kernel's types names it.
const manyProbes = "bpf_kprobe_multi_link_attach"

// tracefs returns the path of the mounted tracefs below the root.
func (m machine) tracefs() (dir string, err error) {
	for _, path := range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		if _, err := os.Stat(filepath.Join(m.root, path, "available_tracers")); err == nil {
			return path, nil
		} else if errors.Is(err, fs.ErrPermission) {
			return "", &Error{NoCapability, "this process may not read /" + path, refusal.Rights("run as root"), err}
		}
	}
	return "", &Error{NoTracefs, "no tracefs is mounted at /sys/kernel/tracing", "mount it: mount -t tracefs tracefs /sys/kernel/tracing", fs.ErrNotExist}
}

// attachLimit ends the attachment to functions. One call of the kernel attaches attachCount of them, and cannot be stopped.
const (
	attachLimit = 2 * time.Minute
	attachCount = 16384
)

// Functions counts the functions of the kernel that the processes of a target enter, from Attach on. It counts no system calls.
type Functions struct {
	tracer  *Tracer // finds the processes
	objects functionsObjects
	sites   *sites
	links   []link.Link
	step    string
}

// StartFunctions begins to find the processes of a target. The error is an *Error.
func StartFunctions(target monitor.Target) (*Functions, error) {
	f := &Functions{tracer: &Tracer{target: target, isBare: true}}
	if err := f.start(); err != nil {
		_ = f.close() // the cause is more important
		return nil, thisMachine().explain(err)
	}
	return f, nil
}

func (f *Functions) start() (err error) {
	if f.sites, err = thisMachine().sites(); err != nil {
		return err
	}
	if err := f.tracer.start(); err != nil {
		return err
	}
	return loadFunctionsObjects(&f.objects, &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{functionsMapProcesses: f.tracer.objects.Processes}})
}

// Step sets the step of all counts.
func (f *Functions) Step(name string) error {
	f.step = name
	return nil
}

// Attach attaches the programs to the functions. It returns the number of the functions and the time that it took.
func (f *Functions) Attach() (count int, took time.Duration, err error) {
	begin, err := clock()
	if err != nil {
		return 0, 0, err
	}
	if err := f.attach(begin); err != nil {
		return 0, 0, fmt.Errorf("attach to the functions of the kernel: %w", errors.Join(err, f.detach()))
	}
	if err := f.objects.Counting.Set(uint32(1)); err != nil {
		return 0, 0, fmt.Errorf("begin to count functions: %w", err)
	}
	end, err := clock()
	return len(f.sites.addresses), time.Duration(end - begin), err
}

func (f *Functions) attach(begin uint64) error {
	for program, addresses := range map[*ebpf.Program][]uintptr{f.objects.InterruptBegin: f.sites.interruptBegin, f.objects.InterruptEnd: f.sites.interruptEnd} {
		if err := f.attachTo(program, addresses); err != nil {
			return err
		}
	}
	count := 0
	for addresses := range slices.Chunk(f.sites.addresses, attachCount) {
		if err := f.attachTo(f.objects.FunctionEntry, addresses); err != nil {
			return err
		}
		count += len(addresses)
		moment, err := clock()
		if err != nil {
			return err
		}
		if took := time.Duration(moment - begin); took > attachLimit {
			return fmt.Errorf("%d of %d functions took %v, longer than %v: try it on an idle machine", count, len(f.sites.addresses), took.Round(time.Second), attachLimit)
		}
	}
	return nil
}

func (f *Functions) attachTo(program *ebpf.Program, addresses []uintptr) error {
	l, err := link.KprobeMulti(program, link.KprobeMultiOptions{Addresses: addresses})
	if err == nil {
		f.links = append(f.links, l)
	}
	return err
}

// Stop detaches the programs, removes them from the kernel, and returns the counts by component.
func (f *Functions) Stop() (counts []result.TraceCounts, err error) {
	err = errors.Join(f.objects.Counting.Set(uint32(0)), f.detach(), f.tracer.detach())
	if err == nil {
		err = f.tracer.complete()
	}
	if err == nil {
		counts, err = f.counts()
	}
	return counts, errors.Join(err, f.close())
}

func (f *Functions) detach() error {
	var errs []error
	for _, l := range f.links {
		errs = append(errs, l.Close())
	}
	f.links = nil
	return errors.Join(errs...)
}

func (f *Functions) close() error {
	return errors.Join(f.detach(), f.objects.Close(), f.tracer.close())
}

func (f *Functions) counts() ([]result.TraceCounts, error) {
	var misses uint64
	if err := f.objects.Lost.Get(&misses); err != nil {
		return nil, fmt.Errorf("read the lost functions of the trace: %w", err)
	}
	if misses > 0 {
		return nil, fmt.Errorf("%d functions are missing from the trace, so it has no counts: the table has %d places", misses, f.objects.Functions.MaxEntries())
	}
	list, err := f.tracer.programs()
	if err != nil {
		return nil, fmt.Errorf("read the programs of the trace: %w", err)
	}
	s := &sums{[]string{f.step}, f.tracer.components(list), map[place]*result.TraceCounts{}}
	var key functionsFunction
	var count uint64
	entries := f.objects.Functions.Iterate()
	for entries.Next(&key, &count) {
		site, ok := f.sites.at(uintptr(key.Address))
		if !ok {
			return nil, fmt.Errorf("the kernel reports the entry of a function at the address %#x, and its list has none there", key.Address)
		}
		c := s.of(0, key.Program)
		if c.Functions == nil {
			c.Functions = map[string]int64{}
		}
		c.Functions[site.subsystem+"/"+site.name] += int64(count)
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the functions of the trace: %w", err)
	}
	return s.list(), nil
}

// Timeline is nil: the functions have no times.
func (f *Functions) Timeline() *result.TraceTimeline { return nil }
