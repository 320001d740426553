package vmhost

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ProveUse checks that sandboxes of gVisor run on KVM: each sandbox among the processes holds descriptors of a virtual machine and of
// a virtual processor. It ignores other processes, and those that have exited or are exiting. proc is the kernel's proc file system.
//
// The flags of a sandbox are no proof, because a wrapper or another version may use another platform than the flags say.
func ProveUse(proc string, pids []int) error {
	for _, pid := range pids {
		if !isSandbox(proc, pid) {
			continue
		}
		links := descriptors(proc, pid)
		if len(links) == 0 {
			continue
		}
		for _, part := range []struct{ link, title string }{
			{"anon_inode:kvm-vm", "virtual machine"}, {"anon_inode:kvm-vcpu", "virtual processor"},
		} {
			has := func(link string) bool { return strings.HasPrefix(link, part.link) }
			if !slices.ContainsFunc(links, has) && !isExiting(proc, pid) {
				return fmt.Errorf("the sandbox (process %d) holds no %s of KVM, so it runs on another platform than kvm", pid, part.title)
			}
		}
	}
	return nil
}

// isSandbox reports whether a process is gVisor's kernel. The first argument differs between versions.
func isSandbox(proc string, pid int) bool {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	return err == nil && slices.Contains(strings.Split(string(text), "\x00"), "boot")
}

// descriptors lists the files that a process holds. It is empty for a process that has exited or is exiting.
func descriptors(proc string, pid int) []string {
	dir := filepath.Join(proc, strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var links []string
	for _, e := range entries {
		if link, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			links = append(links, link)
		}
	}
	return links
}

// isExiting reports whether a process has begun to exit. The kernel then closes its descriptors one after the other.
func isExiting(proc string, pid int) bool {
	stat, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat")) // a process that has exited has no file
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const flags, exiting = 6, 0x4 // counted from the state, see proc(5); PF_EXITING
	if len(fields) <= flags {
		return false
	}
	set, _ := strconv.ParseUint(fields[flags], 10, 64) // the kernel writes numbers
	return set&exiting != 0
}
