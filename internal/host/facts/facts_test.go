package facts

import (
	"regexp"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
)

func TestRedact(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"kept", "quiet isolcpus=2-3 mitigations=off cpuidle.off=1 user_namespace.enable=1 stmmaceth=a:1", "quiet isolcpus=2-3 mitigations=off cpuidle.off=1 user_namespace.enable=1 stmmaceth=a:1"},
		{"hardware address", "smsc95xx.macaddr=DC:A6:32:01:23:45 x=dc-a6-32-01-23-45", "smsc95xx.macaddr=… x=…"},
		{"serial number", "bcm2709.serial=0x12345678 androidboot.serialno=ABC", "bcm2709.serial=… androidboot.serialno=…"},
		{"disk", "root=PARTUUID=738a4d67-02 resume=UUID=0f2b6c1e-5a0d-4a55-8d6f-1f3f4a4c9d10", "root=… resume=…"},
		{"network", "ip=dhcp netboot=192.168.1.1 inst.ks=http://a/b", "ip=… netboot=… inst.ks=…"},
		{"secrets", `rd.luks.key=/k passwd=x "a.token=b c" 0123456789abcdef0123`, `rd.luks.key=… passwd=… "a.token=… …`},
		{"for init", "quiet -- --password x", "quiet"},
		{"quoted blank", `dyndbg="file a +p" quiet`, `dyndbg="file a +p" quiet`},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := redact(tt.in); got != tt.want {
				t.Errorf("redact(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`"A \"B\" \\ \$C"`: `A "B" \ $C`, `'A\B'`: `A\B`, `plain`: `plain`, `"`: `"`, ``: ``, `"a'`: `"a'`,
	} {
		if got := unquote(in); got != want {
			t.Errorf("unquote(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestVirtual(t *testing.T) {
	guest := map[string]string{"flags": "fpu hypervisor lm"}
	metal := map[string]string{"flags": "fpu lm"}
	arm := map[string]string{"cpu part": "0xd0c"}
	const clocks, release = "sys/devices/system/clocksource/clocksource0/available_clocksource", "proc/sys/kernel/osrelease"
	const cpuid = "cpuid" // the signature of the hypervisor, which is in no file
	tests := []struct {
		name    string
		cpuinfo map[string]string
		files   map[string]string
		want    string
	}{
		{"bare metal", metal, nil, ""},
		{"unknown hypervisor", guest, nil, "not identified"},
		{"KVM without firmware", guest, map[string]string{clocks: "tsc kvm-clock"}, "kvm"},
		{"KVM by QEMU", guest, map[string]string{clocks: "kvm-clock tsc", dmi + "sys_vendor": "QEMU", dmi + "product_name": "Standard PC"}, "kvm (QEMU Standard PC)"},
		{"QEMU alone", guest, map[string]string{clocks: "tsc", dmi + "sys_vendor": "QEMU"}, "qemu (QEMU)"},
		{"VirtualBox has KVM's clock", guest, map[string]string{clocks: "kvm-clock", dmi + "product_name": "VirtualBox"}, "oracle (VirtualBox)"},
		{"EC2", guest, map[string]string{clocks: "kvm-clock", dmi + "sys_vendor": "Amazon EC2", dmi + "product_name": "m5.large"}, "amazon (Amazon EC2 m5.large)"},
		{"EC2 bare metal", metal, map[string]string{dmi + "sys_vendor": "Amazon EC2", dmi + "product_name": "m5.metal"}, ""},
		{"EC2 bare metal on ARM", arm, map[string]string{dmi + "sys_vendor": "Amazon EC2", dmi + "product_name": "m6g.metal"}, ""},
		{"EC2 on ARM", arm, map[string]string{dmi + "sys_vendor": "Amazon EC2", dmi + "product_name": "m6g.large"}, "amazon (Amazon EC2 m6g.large)"},
		{"Hyper-V", guest, map[string]string{clocks: "hyperv_clocksource_tsc_page acpi_pm", dmi + "sys_vendor": "Microsoft Corporation"}, "microsoft (Microsoft Corporation)"},
		{"Xen guest", metal, map[string]string{"sys/hypervisor/type": "xen"}, "xen"},
		{"Xen's control domain", metal, map[string]string{"sys/hypervisor/type": "xen", "proc/xen/capabilities": "control_d"}, ""},
		{"Xen's clock", guest, map[string]string{clocks: "xen tsc"}, "xen"},
		{"KVM in the device tree", arm, map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "kvm"},
		{"another in the device tree", arm, map[string]string{"proc/device-tree/hypervisor/compatible": "acme,hv"}, "acme,hv"},
		{"QEMU in the device tree", arm, map[string]string{"proc/device-tree/fw-cfg@9020000/name": "fw-cfg"}, "qemu"},
		{"user mode", map[string]string{"vendor_id": "User Mode Linux"}, nil, "uml"},
		{"ARM board", arm, nil, ""},

		{"Firecracker on ARM", arm, map[string]string{"proc/device-tree/compatible": "linux,dummy-virt\x00"}, "not identified"},
		{"Cloud Hypervisor without the link in /proc", arm, map[string]string{"sys/firmware/devicetree/base/compatible": "linux,dummy-virt\x00"}, "not identified"},
		{"crosvm with KVM's clock", arm, map[string]string{"proc/device-tree/compatible": "linux,dummy-virt\x00", "sys/class/ptp/ptp0/clock_name": "KVM virtual PTP"}, "kvm"},
		{"WSL 2 on ARM", arm, map[string]string{release: "5.15.153.1-microsoft-standard-WSL2"}, "microsoft"},
		{"WSL 2 with another kernel", arm, map[string]string{release: "6.6.0-custom", "sys/bus/vmbus/devices/x/id": "1"}, "microsoft"},
		{"LinuxKit on ARM", arm, map[string]string{release: "6.10.14-linuxkit"}, "not identified"},
		{"OrbStack", arm, map[string]string{release: "6.13.7-orbstack-00283"}, "apple"},
		{"LinuxKit's kernel on a server", arm, map[string]string{release: "6.10.14-linuxkit", dmi + "sys_vendor": "HPE"}, ""},
		{"a board with a kernel of its own", arm, map[string]string{release: "6.1.0-rpi8", "proc/device-tree/compatible": "raspberrypi,4-model-b brcm,bcm2711"}, ""},
		{"Apple's framework", arm, map[string]string{dmi + "sys_vendor": "Apple Inc.", dmi + "product_name": "Apple Virtualization Generic Platform"}, "apple (Apple Inc. Apple Virtualization Generic Platform)"},
		{"Asahi Linux", arm, map[string]string{"proc/device-tree/compatible": "apple,j274 apple,t8103"}, ""},
		{"UTM", arm, map[string]string{dmi + "sys_vendor": "QEMU", dmi + "product_name": "QEMU Virtual Machine"}, "qemu (QEMU QEMU Virtual Machine)"},
		{"Azure on ARM", arm, map[string]string{dmi + "sys_vendor": "Microsoft Corporation", dmi + "product_name": "Virtual Machine"}, "microsoft (Microsoft Corporation Virtual Machine)"},
		{"a tablet of Microsoft", arm, map[string]string{dmi + "sys_vendor": "Microsoft Corporation", dmi + "product_name": "Surface Pro X"}, ""},
		{"a server of Oracle", arm, map[string]string{dmi + "sys_vendor": "Oracle Corporation", dmi + "product_name": "ORACLE SERVER A1-2C", dmi + "board_vendor": "Oracle Corporation"}, ""},
		{"VirtualBox on a vendor's board", guest, map[string]string{dmi + "sys_vendor": "Acme", dmi + "board_vendor": "Oracle Corporation", dmi + "board_name": "VirtualBox"}, "oracle (Acme)"},
		{"Cloud Hypervisor", guest, map[string]string{dmi + "sys_vendor": "Cloud Hypervisor", dmi + "product_name": "cloud-hypervisor"}, "kvm (Cloud Hypervisor cloud-hypervisor)"},
		{"RISC-V of QEMU", nil, map[string]string{"proc/device-tree/compatible": "riscv-virtio"}, "qemu"},
		{"POWER of QEMU", nil, map[string]string{"proc/device-tree/qemu,pseries": "1"}, "qemu"},
		{"IBM Z under KVM", nil, map[string]string{"proc/sysinfo": "Type: 8561\nVM00 Control Program: KVM/Linux"}, "kvm"},
		// QEMU's own signature means emulation, and KVM's means KVM, also if the machine has neither KVM's clock nor firmware.
		{"emulated, without firmware", guest, map[string]string{cpuid: "TCGTCGTCGTCG"}, "qemu"},
		{"emulated, with the firmware of a cloud", guest, map[string]string{cpuid: "TCGTCGTCGTCG", dmi + "sys_vendor": "OpenStack Foundation"}, "qemu (OpenStack Foundation)"},
		{"KVM without its clock", guest, map[string]string{cpuid: "KVMKVMKVM", clocks: "tsc", dmi + "sys_vendor": "QEMU"}, "kvm (QEMU)"},
		{"KVM without its clock and firmware", guest, map[string]string{cpuid: "KVMKVMKVM"}, "kvm"},
		{"KVM in a cloud", guest, map[string]string{cpuid: "KVMKVMKVM", dmi + "sys_vendor": "Amazon EC2"}, "amazon (Amazon EC2)"},
		{"QEMU with a hidden KVM", guest, map[string]string{cpuid: "other", clocks: "tsc", dmi + "sys_vendor": "QEMU"}, "qemu (QEMU)"},
		{"bare metal, where the leaf has no meaning", metal, map[string]string{cpuid: "TCGTCGTCGTCG"}, ""},
		{"IBM Z under z/VM", nil, map[string]string{"proc/sysinfo": "VM00 Control Program: z/VM    7.2.0"}, "zvm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fixture(tt.files).virtual(tt.cpuinfo, tt.files[cpuid]); got != tt.want {
				t.Errorf("virtual = %q, want %q", got, tt.want)
			}
		})
	}
}

// The signature of this machine agrees with its clock.
func TestSignature(t *testing.T) {
	machine := reader{machine.At("/")}
	got := signature()
	t.Logf("the signature is %q", got)
	if machine.clockHypervisor() == "kvm" && got != signatureKVM && got != "Microsoft Hv" && got != "" {
		t.Errorf("the signature is %q on a machine with KVM's clock", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("root=PARTUUID=738a4d67-02 quiet -- x")
	f.Add(`dyndbg="file a +p" 01:23:45:67:89:ab`)
	address := regexp.MustCompile(`(?i)([0-9a-f]{2}:){5}[0-9a-f]{2}`)
	f.Fuzz(func(t *testing.T, cmdline string) {
		if out := redact(cmdline); address.MatchString(out) {
			t.Errorf("redact(%q) = %q", cmdline, out)
		}
	})
}
