package host

import "strings"

// virtual returns the name of the machine's hypervisor in the terms of systemd-detect-virt. The product follows in brackets if the
// firmware has it. The name is empty on bare metal. The signature is the hypervisor's own name for itself, empty if unknown.
func (t tree) virtual(cpuinfo map[string]string, signature string) string {
	hypervisor := t.hypervisor(cpuinfo, signature)
	if hypervisor == "" {
		return ""
	}
	product := strings.TrimSpace(t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name"))
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

// hypervisor is a short version of systemd's detection. Of the signatures it uses only those of QEMU and KVM; the clock sources and the
// firmware identify the others.
func (t tree) hypervisor(cpuinfo map[string]string, signature string) string {
	if strings.Contains(t.text("proc/xen/capabilities"), "control_d") {
		return "" // this is Xen's control domain, which is the host
	}
	if name := t.text("sys/hypervisor/type"); name != "" {
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
	firmware, clock := t.dmiHypervisor(), t.clockHypervisor()
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
	case flagged:
		return "not identified"
	}
	return ""
}

// treeHypervisor reads the hypervisor from the device tree.
func (t tree) treeHypervisor() string {
	compatible := t.text("proc/device-tree/hypervisor/compatible")
	for _, name := range []string{"kvm", "xen", "vmware"} {
		if strings.Contains(compatible, name) { // "linux,kvm", "xen,xen-4.19 xen,xen", …
			return name
		}
	}
	if compatible != "" {
		return compatible
	}
	if len(t.glob("proc/device-tree/fw-cfg@*")) > 0 {
		return "qemu"
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
	{"Oracle Corporation", "oracle"},
	{"Xen", "xen"},
	{"Bochs", "bochs"},
	{"Parallels", "parallels"},
	{"BHYVE", "bhyve"},
	{"Hyper-V", "microsoft"},
	{"Apple Virtualization", "apple"},
	{"Google Compute Engine", "google"},
}

// dmiHypervisor reads the hypervisor from the firmware's DMI tables.
func (t tree) dmiHypervisor() string {
	const dir = "sys/class/dmi/id/"
	if strings.HasSuffix(t.text(dir+"product_name"), ".metal") {
		return "" // an EC2 instance without a hypervisor
	}
	// The product comes first because it distinguishes KVM from plain QEMU.
	for _, file := range []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"} {
		text := t.text(dir + file)
		for _, v := range dmiVendors {
			if strings.HasPrefix(text, v.mark) {
				return v.name
			}
		}
	}
	return ""
}

// clockHypervisor returns the hypervisor of the available clock sources.
func (t tree) clockHypervisor() string {
	clocks := t.text("sys/devices/system/clocksource/clocksource0/available_clocksource")
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
