package result

import (
	"cmp"
	"fmt"
	"strings"
)

// memoryTolerance is the largest difference in MemTotal between kernels on one machine, as a share. Each kernel reserves a
// different part of the memory.
const memoryTolerance = 0.03

// SameMachine reports whether two runs were made on one machine, judged by their facts: name, architecture, model and number of
// CPUs, hypervisor, and memory within memoryTolerance. It is the only definition; every comparison of absolute times across runs
// uses it.
//
// The name alone is not enough, since many machines keep the name of their image. Kernel, cgroup mode, governor and similar facts
// do not count: users change them on one machine to see the difference. A machine with unknown name, CPU or memory equals no other
// machine. Runs are published, so they contain no serial number or machine ID, and two boards of one model with one name are
// indistinguishable.
func (h *Host) SameMachine(other *Host) bool {
	if h.Hostname == "" || h.CPU == "" || h.Memory <= 0 || other.Memory <= 0 {
		return false
	}
	least, most := min(h.Memory, other.Memory), max(h.Memory, other.Memory)
	return h.Hostname == other.Hostname && h.Arch == other.Arch && h.CPU == other.CPU && h.CPUs == other.CPUs &&
		h.Virtual == other.Virtual && float64(most-least) <= memoryTolerance*float64(most)
}

// Nature is the kind of a machine, judged by its facts.
type Nature int

// The natures.
const (
	// Physical is a machine without a detected hypervisor.
	Physical Nature = iota
	// Guest is a virtual machine on the CPU of its host.
	Guest
	// Emulated is a machine whose CPU is a program. It is many times slower, and the factor differs between operations.
	Emulated
	// GuestOrEmulated is a QEMU machine without further facts.
	GuestOrEmulated
)

// Nature returns the nature of the machine. QEMU without a hypervisor emulates. On x86 a KVM guest would have KVM's clock and be
// called kvm. On other architectures only the CPU can reveal emulation, unless QEMU imitates an existing CPU. Arm reserves
// implementer 0 for software.
func (h *Host) Nature() Nature {
	hypervisor, _, _ := strings.Cut(h.Virtual, " ")
	switch {
	case strings.Contains(h.CPU, "QEMU TCG"), strings.Contains(h.CPU, "implementer 0x00,"):
		return Emulated
	case hypervisor == "":
		return Physical
	case hypervisor != "qemu":
		return Guest
	case h.Arch == "amd64" || h.Arch == "386":
		return Emulated
	}
	return GuestOrEmulated
}

// NatureText describes the nature of the machine: "no hypervisor found", "guest of kvm", "emulated by qemu".
func (h *Host) NatureText() string {
	switch h.Nature() {
	case Physical:
	case Guest:
		return "guest of " + h.Virtual
	case Emulated:
		return "emulated by " + cmp.Or(h.Virtual, "qemu")
	case GuestOrEmulated:
		return fmt.Sprintf("guest of %s, and perhaps emulated", h.Virtual)
	}
	return "no hypervisor found"
}
