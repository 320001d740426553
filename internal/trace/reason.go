package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Reason is the kind of the cause why a machine cannot trace.
type Reason string

// The reasons.
const (
	OldKernel    Reason = "old kernel"    // before Linux 5.8
	NoBTF        Reason = "no BTF"        // the kernel does not describe its types
	NoBPF        Reason = "no BPF"        // the kernel has no system call bpf
	Lockdown     Reason = "lockdown"      // the kernel keeps its memory confidential
	NoCapability Reason = "no capability" // this process may not load programs
	Filtered     Reason = "seccomp"       // a filter refuses the system call bpf
	Verifier     Reason = "verifier"      // the kernel refuses a program
	Unexplained  Reason = "unexplained"
)

// Error is the reason why a machine cannot trace.
type Error struct {
	Reason Reason
	Cause  string // a sentence
	Remedy string
	Err    error // of the kernel
}

func (e *Error) Error() string { return e.Cause + "; " + e.Remedy }

// Unwrap returns the kernel's error.
func (e *Error) Unwrap() error { return e.Err }

// machine has the facts that explain a refusal.
type machine struct {
	root    string // of the file system; "/" except in tests
	release string // of the kernel
}

func thisMachine() machine {
	var name unix.Utsname
	_ = unix.Uname(&name) // it fails only for a bad address
	return machine{"/", unix.ByteSliceToString(name.Release[:])}
}

// read reads a file of the kernel. It is empty if it cannot be read, and the reason is then less exact.
func (m machine) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(m.root, name))
	return string(data)
}

var releasePattern = regexp.MustCompile(`^(\d+)\.(\d+)`)

// before reports whether the kernel is older than a version. A release that is no version is not.
func (m machine) before(major, minor int) bool {
	parts := releasePattern.FindStringSubmatch(m.release)
	if parts == nil {
		return false
	}
	hasMajor, _ := strconv.Atoi(parts[1]) // the pattern allows only digits
	hasMinor, _ := strconv.Atoi(parts[2])
	return cmp.Or(cmp.Compare(hasMajor, major), cmp.Compare(hasMinor, minor)) < 0
}

// types is the kernel's description of its types.
const types = "sys/kernel/btf/vmlinux"

// check returns an *Error for a kernel that lacks a part.
func (m machine) check() error {
	if m.before(5, 8) {
		return &Error{OldKernel, "the kernel " + m.release + " is older than Linux 5.8", "use Linux 5.8 or later", unix.ENOSYS}
	}
	if _, err := os.Stat(filepath.Join(m.root, types)); errors.Is(err, fs.ErrNotExist) {
		return &Error{NoBTF, "the kernel does not describe its types (BTF): /" + types + " does not exist", "use a kernel with CONFIG_DEBUG_INFO_BTF=y, like the kernels of most distributions", err}
	}
	return nil
}

// explain returns the *Error for an error of the loader.
func (m machine) explain(err error) *Error {
	if reason, ok := errors.AsType[*Error](err); ok {
		return reason
	}
	status := m.read("proc/thread-self/status")
	isDenied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	isAbsent := errors.Is(err, unix.ENOSYS)
	_, isVerifier := errors.AsType[*ebpf.VerifierError](err)
	switch {
	case isDenied && strings.Contains(m.read("sys/kernel/security/lockdown"), "[confidentiality]"):
		return &Error{Lockdown, "the lockdown of the kernel in mode confidentiality forbids programs that read its memory", "boot with lockdown=integrity", err}
	case isDenied && !isCapable(status):
		return &Error{NoCapability, "this process has neither CAP_SYS_ADMIN nor both CAP_BPF and CAP_PERFMON", refusal.Rights("run as root"), err}
	case (isDenied || isAbsent) && strings.Contains(status, "\nSeccomp:\t2\n"):
		return &Error{Filtered, "the seccomp filter of the container or service around Touchstone refuses the system call bpf", "allow it there, or run Touchstone outside (docker run --privileged)", err}
	case isAbsent:
		return &Error{NoBPF, "the kernel " + m.release + " has no system call bpf", "use a kernel with CONFIG_BPF_SYSCALL=y", err}
	case isVerifier && !isDenied:
		return &Error{Verifier, fmt.Sprintf("the kernel %s refuses a program of the tracer: %v", m.release, err), "report it with the output of touchstone doctor", err}
	}
	return &Error{Unexplained, fmt.Sprintf("the kernel %s refuses the tracer: %v", m.release, err), refusal.Forbidden, err}
}

// isCapable reports whether a process has the capabilities to load programs. status is its file in /proc. Without the line nothing is known,
// and other causes are more probable.
func isCapable(status string) bool {
	_, line, ok := strings.Cut(status, "\nCapEff:\t")
	if !ok {
		return true
	}
	line, _, _ = strings.Cut(line, "\n")
	mask, err := strconv.ParseUint(line, 16, 64)
	has := func(capability int) bool { return mask&(1<<capability) != 0 }
	return err != nil || has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}
