// Package lab boots small virtual machines, in which tests run Touchstone where the machine that builds it is not like its
// users': on a pure cgroup v2, on ARM, with a kernel and programs as Debian ships them. It is part of the tests: no package of
// the product may import it, which lint sees to.
//
// [Lab.Build] makes the system of a [Machine] from packages of Debian: a kernel, its modules, and a disk. Nothing of it
// is executed, so that it is made for any architecture, and it is kept in the image cache. [Lab.Boot] starts it with QEMU,
// gives it a [job.Job], and gives back the report. What is init there is the program in guest: it needs no shell, and does
// nothing that nobody has asked for.
//
// A machine has no network. The job comes on a disk and the report goes to another one, both tar archives: see package job.
// All files of a boot are deleted before QEMU starts and live by their descriptors, the disk of the system is opened as a snapshot,
// and QEMU dies with this process: however a boot ends, nothing is left, and what is cached is as it was.
//
// Machines are emulated unless KVM is seen to work, which a device alone does not promise: it is tried with the
// machine itself. Times in a machine say nothing of any other one.
package lab

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// Machine is a virtual machine.
type Machine struct {
	Name string
	Arch string // as Go names it
	// Memory is in MiB.
	Memory int
	CPUs   int
	// Packages are those of Debian that the disk has, with what they depend on.
	Packages []string
	// Modules are those of the kernel that are loaded at boot, with what they depend on: nothing is loaded later.
	Modules []string
}

// V2 is an x86-64 machine with nothing but cgroup v2, as most servers are.
func V2() Machine {
	return Machine{
		Name: "v2", Arch: "amd64", Memory: 3072, CPUs: 2,
		Packages: []string{"base-files", "containerd", "containernetworking-plugins", "coreutils", "crun", "runc", "util-linux"},
		Modules:  modules,
	}
}

// ARM is as small as the boards of embedded engineers: 1 GiB of memory, and no daemon.
func ARM() Machine {
	return Machine{
		Name: "arm", Arch: "arm64", Memory: 1024, CPUs: 2,
		Packages: []string{"base-files", "coreutils", "crun", "runc", "util-linux"},
		Modules:  modules,
	}
}

// modules are what disks and containers need, those that kernels have built in as well.
var modules = []string{"virtio_pci", "virtio_blk", "ext4", "overlay", "veth", "bridge", "br_netfilter", "nf_tables", "tun", "fuse"}

// Lab builds and boots machines.
type Lab struct {
	// Launcher starts processes.
	Launcher *process.Launcher
	// Guest is the directory with the program of package guest for each architecture, as guest-ARCH.
	Guest string
	// Progress is told each step; nil for nobody.
	Progress func(step string)

	kvm map[string]error // by the name of a machine: why it is not used
}

func (l *Lab) progress(m Machine, format string, args ...any) {
	if l.Progress != nil {
		l.Progress(m.Name + ": " + fmt.Sprintf(format, args...))
	}
}
