package monitor

import (
	"golang.org/x/sys/unix"
)

// spaces are the address spaces of the processes that are counted so far, by their extent. Processes that share one (CLONE_VM
// without CLONE_THREAD) each show the whole of it in smaps_rollup: gVisor's systrap runs programs in several such processes, so a plain sum
// counts the memory of a program twice.
type spaces map[string][]int

// counted reports whether an earlier process shares the address space of this one. Processes with different extents do not. Without
// kcmp(2) (CONFIG_KCMP, and the permission to trace both) every process counts.
func (s spaces) counted(pid int, extent string) bool {
	for _, peer := range s[extent] {
		if sameSpace(pid, peer) {
			return true
		}
	}
	s[extent] = append(s[extent], pid)
	return false
}

// sameSpace reports whether two processes share their address space.
func sameSpace(a, b int) bool {
	const kcmpVM = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && order == 0
}
