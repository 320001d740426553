package result

import (
	"cmp"
	"fmt"
	"strings"
)

// memoryTolerance is how much the MemTotal of one machine may differ between kernels, as a share: each reserves
// another part for itself.
const memoryTolerance = 0.03

// SameMachine tells whether two runs were made on one machine, as far as their facts tell: name,
// architecture, model and number of CPUs, hypervisor, and memory but for what a kernel keeps for itself. It is
// the one definition; whatever sets absolute times of two runs beside each other asks it.
//
// The name alone is not enough, since many machines keep that of their image. Kernel, cgroup mode, governor
// and the like are no part of it: they are what one changes on a machine to see the difference. A machine of
// which name, CPU or memory is not known is like no other. Runs are published, so that no serial number or
// machine ID is recorded, and two boards of one model with one name cannot be told apart.
func (h *Host) SameMachine(other *Host) bool {
	if h.Hostname == "" || h.CPU == "" || h.Memory <= 0 || other.Memory <= 0 {
		return false
	}
	least, most := min(h.Memory, other.Memory), max(h.Memory, other.Memory)
	return h.Hostname == other.Hostname && h.Arch == other.Arch && h.CPU == other.CPU && h.CPUs == other.CPUs &&
		h.Virtual == other.Virtual && float64(most-least) <= memoryTolerance*float64(most)
}

// Nature is what a machine is as far as its facts tell.
type Nature int

// The natures there are.
const (
	// Physical is a machine on which no hypervisor was found.
	Physical Nature = iota
	// Guest is a virtual machine on the CPU of its host.
	Guest
	// Emulated is a machine whose CPU is a program: it is many times slower, and not by the same factor everywhere.
	Emulated
	// GuestOrEmulated is a machine of QEMU that tells no more.
	GuestOrEmulated
)

// Nature tells what the machine is. QEMU without a hypervisor emulates; on x86 a guest of KVM would have
// its clock, and be called kvm; elsewhere only the CPU may tell, and does not if QEMU imitates one that exists. Arm
// leaves the implementer 0 to software.
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

// NatureText says in words what the machine is: "no hypervisor found", "guest of kvm", "emulated by qemu".
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
