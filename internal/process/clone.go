package process

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// cloneArgs is the kernel's struct clone_args since Linux 5.7, which added cgroup.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// cloneRefusal returns the reason why children cannot start in a cgroup of the unified tree; nil if they can. The call names a file that
// is not open, so no kernel makes a child.
func cloneRefusal() *refusal.Error {
	args := cloneArgs{flags: unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD), cgroup: math.MaxInt32}
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	return cloneRefusalOf(errno)
}

// cloneRefusalOf interprets the error of the call. A kernel before 5.7 refuses the longer structure or the flag. EBADF is the answer of a
// kernel that looks at the file; EAGAIN and ENOMEM say nothing about the call.
func cloneRefusalOf(errno unix.Errno) *refusal.Error {
	if refusal.Refused(errno) || errno == unix.E2BIG || errno == unix.EINVAL {
		return refusal.SystemCall("clone3", "5.7", errno)
	}
	return nil
}
