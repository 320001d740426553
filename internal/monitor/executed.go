package monitor

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// executed identifies a program's file: the device of its file system and its inode. It is zero if the file is not known. On btrfs the kernel's
// records of exits have another device than stat, so a runtime there is known by its name only.
type executed struct {
	device, inode uint64
}

// executable identifies the file of a program; zero if it cannot be read.
func executable(path string) executed {
	info, err := os.Stat(path)
	if err != nil {
		return executed{}
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return executed{device: uint64(s.Dev), inode: s.Ino}
	}
	return executed{}
}

// executes identifies the file that a living process executes.
func executes(proc string, pid int) executed { return executable(fmt.Sprintf("%s/%d/exe", proc, pid)) }

// memoryDevice returns the device of files without a name in memory (memfd). Some runtimes execute a copy of themselves from such a file, so
// that a container cannot change their program: youki always, and runc without an overlay. The first program of a container is no such file, unless
// it executes a copy of itself too.
var memoryDevice = sync.OnceValue(func() uint64 {
	fd, err := unix.MemfdCreate("touchstone", unix.MFD_CLOEXEC)
	if err != nil {
		return noDevice
	}
	defer func() { _ = unix.Close(fd) }()
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil {
		return noDevice
	}
	return uint64(s.Dev)
})

// noDevice is the number of no device: the kernel's numbers have 32 bits.
const noDevice = 1 << 63
