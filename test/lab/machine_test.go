// Package lab runs Touchstone in small virtual machines. Users have systems that differ from the build machine: pure
// cgroup v2, ARM, Debian's kernel and programs. The package has only tests.
//
// [Lab.Build] builds the [Image] of a [Machine] from Debian packages: a kernel, its modules, and a disk. It executes no program from
// the packages, so it can build for any architecture. It stores the image in the image cache. [Lab.Boot] starts the machine with
// QEMU, passes it a [job.Job], and returns the report. The init process of the machine is the program in directory guest: it needs no
// shell, and starts no process besides the steps of the job.
//
// A machine has no network. The job is on one disk, the machine writes the report to another one, and both are tar archives: see
// package job. A boot leaves nothing behind, however it ends: its files are unlinked before QEMU starts, QEMU opens the system disk as a
// snapshot, and QEMU is killed when this process exits.
//
// Machines are emulated unless KVM works. A readable /dev/kvm does not prove that, so the lab boots the machine itself once with
// KVM. Durations in a machine cannot be compared with durations elsewhere.
package lab

import (
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// Machine is a virtual machine.
type Machine struct {
	Name string
	Arch string // as Go names it
	// Memory is in MiB.
	Memory int
	CPUs   int
	// Packages are the Debian packages on the disk. Their dependencies are added.
	Packages []string
	// Modules are the kernel modules that the guest loads at boot. Their dependencies are added. No module is loaded later.
	Modules []string
}

// V2 returns an x86-64 machine with pure cgroup v2, like most servers. KVM works in it, so it has the packages and modules for gVisor's
// KVM platform, and for an installation of Kata Containers.
func V2() Machine {
	return Machine{
		Name: "v2", Arch: "amd64", Memory: 3072, CPUs: 2,
		Packages: []string{
			"base-files", "containerd", "containernetworking-plugins", "coreutils", "crun", "runc", "util-linux",
			"conmon", "dash", "docker.io", "iptables", "qemu-system-x86", "virtiofsd",
		},
		Modules: slices.Concat(modules, []string{
			"kvm_amd", "kvm_intel", "vhost_vsock", "vhost_net", // the CPU of an emulated machine is AMD's
			"sch_ingress", "cls_u32", "act_mirred", "xfrm_user", // for Kata's network, which opens netlink sockets of all families
			"nft_compat", "nft_chain_nat", "xt_addrtype", "xt_conntrack", "xt_MASQUERADE", "xt_nat", // Docker
		}),
	}
}

// ARM returns an arm64 machine as small as an embedded board: 1 GiB of memory, and no daemon.
func ARM() Machine {
	return Machine{
		Name: "arm", Arch: "arm64", Memory: 1024, CPUs: 2,
		Packages: []string{"base-files", "coreutils", "crun", "runc", "util-linux"},
		Modules:  modules,
	}
}

// modules are the modules for disks and containers. Some kernels have some of them built in.
var modules = []string{"virtio_pci", "virtio_blk", "ext4", "overlay", "veth", "bridge", "br_netfilter", "nf_tables", "tun", "fuse"}

// Lab builds and boots machines.
type Lab struct {
	// Launcher starts processes.
	Launcher *process.Launcher
	// Guest is the directory of the guest program, which is named guest-ARCH for each architecture.
	Guest string
	// Progress receives a message for each step. It may be nil.
	Progress func(step string)

	kvm map[string]error // the result of the KVM trial, by machine name; nil if KVM works
}

func (l *Lab) progress(name, format string, args ...any) {
	if l.Progress != nil {
		l.Progress(name + ": " + fmt.Sprintf(format, args...))
	}
}
