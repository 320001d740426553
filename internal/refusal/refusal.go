// Package refusal names what the kernel refuses: the call or the file, the cause, and the remedy.
//
// An error number alone misleads. EPERM of a system call is a missing right, or a seccomp filter of a container around Touchstone.
// EINVAL of a cgroup can mean a real-time process. So each place that meets such a refusal returns an [Error], and callers show it as it
// is, without advice of their own.
package refusal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Error is a refusal of the kernel.
type Error struct {
	What   string // the refused operation
	Err    error  // the kernel's error
	Cause  string
	Remedy string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v: %s; %s", e.What, e.Err, e.Cause, e.Remedy)
}

// Unwrap returns the kernel's error.
func (e *Error) Unwrap() error { return e.Err }

// SystemCall returns the refusal of a system call that Linux has since a version.
func SystemCall(name, version string, err error) *Error {
	status, _ := os.ReadFile("/proc/self/status") // without it the cause is less exact
	return systemCall(name, version, err, strings.Contains(string(status), "\nSeccomp:\t2\n"))
}

func systemCall(name, version string, err error, filtered bool) *Error {
	e := &Error{What: name, Err: err}
	const allow = "allow it there, or run Touchstone outside (docker run --security-opt seccomp=unconfined)"
	switch {
	case filtered:
		e.Cause, e.Remedy = "the seccomp filter of the container or service around Touchstone refuses this system call", allow
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		e.Cause, e.Remedy = "a seccomp filter, a security module or a tracer refuses this system call", allow
	default:
		e.Cause, e.Remedy = "this kernel does not have this system call, or a sandbox hides it", "use Linux "+version+" or later, outside of the sandbox"
	}
	return e
}

// Refused reports whether an error of a system call means that this process does not have the call. A filter answers EPERM, EACCES or
// ENOSYS; its author chooses.
func Refused(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

// Suspect returns the remedy for the message of another program, if a system call that is refused to this program may be the cause: the
// message names the call, or something was denied. It is empty otherwise. A program that cannot make threads without clone3 does not name it.
func Suspect(message string, refusals []*Error) string {
	for _, r := range refusals {
		if strings.Contains(message, r.What) {
			return fmt.Sprintf("%s is refused to Touchstone too: %s; %s", r.What, r.Cause, r.Remedy)
		}
	}
	if !strings.Contains(message, "ermission denied") && !strings.Contains(message, "not permitted") {
		return ""
	}
	// A program does without a call that the kernel lacks (ENOSYS), and reports no missing right.
	denied := slices.DeleteFunc(slices.Clone(refusals), func(r *Error) bool { return !errors.Is(r, unix.EPERM) && !errors.Is(r, unix.EACCES) })
	if len(denied) == 0 {
		return ""
	}
	var names []string
	for _, r := range denied {
		names = append(names, r.What)
	}
	return fmt.Sprintf("the reason may be %s, which is refused to Touchstone too: %s; %s", strings.Join(names, " or "), denied[0].Cause, denied[0].Remedy)
}

// Rights returns the remedy for a missing right: the given one for an ordinary user, such as "run as root". root has every right
// of a user, so something around it takes this one away.
func Rights(user string) string { return rights(os.Geteuid(), user) }

func rights(uid int, user string) string {
	if uid != 0 {
		return user
	}
	return Forbidden
}

// Forbidden is the remedy for a right that root itself lacks.
const Forbidden = "find out which security module, container or sandbox forbids it to root (dmesg | grep -i denied), or run outside of it " +
	"(docker run --privileged)"
