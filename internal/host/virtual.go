package host

import "strings"

// virtual names the hypervisor that the machine is a guest of, as systemd-detect-virt
// names it, with the product in brackets where firmware tells; empty on bare metal.
func (t tree) virtual(cpuinfo map[string]string) string {
	hypervisor := t.hypervisor(cpuinfo)
	if hypervisor == "" {
		return ""
	}
	product := strings.TrimSpace(t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name"))
	if product == "" {
		return hypervisor
	}
	return hypervisor + " (" + product + ")"
}

// hypervisor follows systemd's detection in short. The CPUID leaf that names the
// hypervisor is not asked, as that needs assembly; the clock sources tell as much.
func (t tree) hypervisor(cpuinfo map[string]string) string {
	if strings.Contains(t.text("proc/xen/capabilities"), "control_d") {
		return "" // Xen's control domain is the host
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
		// Without the flag firmware may still name a vendor of clouds: it is one of their
		// bare-metal machines.
		return ""
	}
	firmware, clock := t.dmiHypervisor(), t.clockHypervisor()
	switch {
	case firmware != "" && firmware != "qemu": // VirtualBox, too, offers KVM's clock
		return firmware
	case clock != "": // QEMU alone emulates, with KVM's clock it does not
		return clock
	case firmware != "":
		return firmware
	case flagged:
		return "not identified"
	}
	return ""
}

// treeHypervisor asks the device tree.
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

// dmiVendors are the beginnings of what firmware of virtual machines says of itself,
// from systemd's table.
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

// dmiHypervisor asks the firmware's tables.
func (t tree) dmiHypervisor() string {
	const dir = "sys/class/dmi/id/"
	if strings.HasSuffix(t.text(dir+"product_name"), ".metal") {
		return "" // EC2's machines without a hypervisor
	}
	// The product stands first, to tell KVM from plain QEMU.
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

// clockHypervisor asks which clocks there are: hypervisors offer their own.
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
