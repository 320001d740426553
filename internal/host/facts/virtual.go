package facts

import (
	"cmp"
	"strings"
)

// virtual returns the name of the machine's hypervisor in the terms of systemd-detect-virt. The product follows in brackets if the
// firmware has it. The name is empty on bare metal. The signature is the hypervisor's own name for itself, empty if unknown.
func (t reader) virtual(cpuinfo map[string]string, signature string) string {
	hypervisor := t.hypervisor(cpuinfo, signature)
	if hypervisor == "" {
		return ""
	}
	product := strings.TrimSpace(t.Text(dmi+"sys_vendor") + " " + t.Text(dmi+"product_name"))
	if product == "" {
		return hypervisor
	}
	return hypervisor + " (" + product + ")"
}

// Signatures of hypervisors on x86. QEMU without KVM has the first one, so it separates emulation from KVM without KVM's clock.
const (
	signatureTCG = "TCGTCGTCGTCG"
	signatureKVM = "KVMKVMKVM"
)

// hypervisor is a short version of systemd's detection. It uses only the signatures of QEMU and KVM; the clock sources and the
// firmware identify the others.
func (t reader) hypervisor(cpuinfo map[string]string, signature string) string {
	if strings.Contains(t.Text("proc/xen/capabilities"), "control_d") {
		return "" // this is Xen's control domain, which is the host
	}
	if name := t.Text("sys/hypervisor/type"); name != "" {
		return name
	}
	if cpuinfo["vendor_id"] == "User Mode Linux" {
		return "uml"
	}
	if name := t.treeHypervisor(); name != "" {
		return name
	}
	flags, isX86 := cpuinfo["flags"]
	flagged := strings.Contains(" "+flags+" ", " hypervisor ")
	if isX86 && !flagged {
		return "" // a bare-metal machine, though its firmware may name a cloud vendor
	}
	firmware, clock := t.dmiHypervisor(), cmp.Or(t.clockHypervisor(), t.busHypervisor(), t.releaseHypervisor())
	switch {
	case signature == signatureTCG:
		return "qemu"
	case firmware != "" && firmware != "qemu": // precedes the clock, because VirtualBox also has KVM's clock
		return firmware
	case clock != "": // precedes QEMU's firmware, because QEMU uses KVM if the machine has its clock
		return clock
	case signature == signatureKVM:
		return "kvm"
	case firmware != "":
		return firmware
	case flagged, t.isVirtualBoard():
		return notIdentified
	}
	return ""
}

// notIdentified is the name of a hypervisor that shows only that it exists.
const notIdentified = "not identified"

// treeHypervisor reads the hypervisor from the device tree.
func (t reader) treeHypervisor() string {
	compatible := t.Board("hypervisor/compatible")
	for _, name := range []string{"kvm", "xen", "vmware", "microsoft"} {
		if strings.Contains(compatible, name) { // "linux,kvm", "xen,xen-4.19 xen,xen", …
			return name
		}
	}
	if compatible != "" {
		return compatible
	}
	if t.HasBoard("fw-cfg@*") || t.HasBoard("*/fw-cfg@*") {
		return "qemu"
	}
	if t.Board("qemu,pseries") != "" || strings.Contains(t.Board("compatible"), "riscv-virtio") {
		return "qemu"
	}
	return ""
}

// isVirtualBoard reports whether the device tree describes a board without hardware. Firecracker, Cloud Hypervisor, crosvm, Apple's
// Virtualization framework and QEMU's microvm give their guests on ARM such a tree and no firmware.
func (t reader) isVirtualBoard() bool {
	return strings.Contains(t.Board("compatible"), "linux,dummy-virt")
}

// busHypervisor returns the hypervisor of paravirtual devices, which need neither firmware nor a device tree.
func (t reader) busHypervisor() string {
	for _, clock := range t.Glob("sys/class/ptp/*/clock_name") {
		switch t.Text(clock) {
		case "KVM virtual PTP":
			return "kvm"
		case "hyperv":
			return "microsoft"
		}
	}
	if len(t.Glob("sys/bus/vmbus/devices/*")) > 0 {
		return "microsoft"
	}
	for _, line := range t.Lines("proc/sysinfo") { // of IBM Z
		if name, ok := strings.CutPrefix(line, "VM00 Control Program:"); ok {
			if strings.HasPrefix(strings.TrimSpace(name), "KVM") {
				return "kvm"
			}
			return "zvm"
		}
	}
	return ""
}

// releases holds parts of the names of kernels that are built for guests of one kind.
var releases = []struct{ part, name string }{
	{"microsoft", "microsoft"}, // WSL 2
	{"linuxkit", notIdentified},
	{"orbstack", "apple"},
	{"firecracker", "kvm"},
}

// releaseHypervisor returns the hypervisor that the name of the kernel shows. A machine with the firmware of a board is not a guest of it.
func (t reader) releaseHypervisor() string {
	if t.Text(dmi+"sys_vendor") != "" {
		return ""
	}
	release := strings.ToLower(t.Text("proc/sys/kernel/osrelease"))
	for _, r := range releases {
		if strings.Contains(release, r.part) {
			return r.name
		}
	}
	return ""
}

// dmiVendors holds prefixes of DMI fields of virtual machines, from systemd's table.
var dmiVendors = []struct{ mark, name string }{
	{"KVM", "kvm"},
	{"OpenStack", "kvm"},
	{"KubeVirt", "kvm"},
	{"Amazon EC2", "amazon"},
	{"QEMU", "qemu"},
	{"VMware", "vmware"},
	{"VMW", "vmware"},
	{"innotek GmbH", "oracle"},
	{"VirtualBox", "oracle"},
	{"Xen", "xen"},
	{"Bochs", "bochs"},
	{"Parallels", "parallels"},
	{"BHYVE", "bhyve"},
	{"Hyper-V", "microsoft"},
	{"Apple Virtualization", "apple"},
	{"Google Compute Engine", "google"},
	{"Alibaba Cloud ECS", "kvm"},
	{"Cloud Hypervisor", "kvm"},
	{"cloud-hypervisor", "kvm"},
	{"crosvm", "kvm"},
	{"Firecracker", "kvm"},
	{"vServer", "kvm"}, // Hetzner
}

// dmi is the directory of the firmware's tables.
const dmi = "sys/class/dmi/id/"

// dmiHypervisor reads the hypervisor from the firmware's DMI tables.
func (t reader) dmiHypervisor() string {
	product := t.Text(dmi + "product_name")
	switch {
	case strings.HasSuffix(product, ".metal"):
		return "" // an EC2 instance without a hypervisor
	case product == "Virtual Machine" && t.Text(dmi+"sys_vendor") == "Microsoft Corporation":
		return "microsoft"
	}
	// The product comes first because it distinguishes KVM from plain QEMU. A vendor of hardware and of a hypervisor, such as Oracle, is no proof.
	for _, file := range []string{"product_name", "sys_vendor", "board_vendor", "board_name", "bios_vendor", "product_version"} {
		text := t.Text(dmi + file)
		for _, v := range dmiVendors {
			if strings.HasPrefix(text, v.mark) {
				return v.name
			}
		}
	}
	return ""
}

// clockHypervisor returns the hypervisor of the available clock sources.
func (t reader) clockHypervisor() string {
	clocks := t.Text("sys/devices/system/clocksource/clocksource0/available_clocksource")
	switch {
	case strings.Contains(clocks, "kvm-clock"):
		return "kvm"
	case strings.Contains(clocks, "hyperv_clocksource"):
		return "microsoft"
	case strings.Contains(" "+clocks+" ", " xen "):
		return "xen"
	}
	return ""
}
