package kata

import (
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestNeeds(t *testing.T) {
	const guest = "path = \"/bin/vmm\"\nkernel = \"/k\"\nvirtio_fs_daemon = \"/bin/virtiofsd\"\n"
	for _, c := range []struct {
		name, text string
		want       vmhost.Guest
	}{
		{
			"QEMU", "[hypervisor.qemu]\n" + guest + "initrd = \"/i\"\ndefault_memory = 512\nshared_fs = \"virtio-fs\"\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", FileServer: "/bin/virtiofsd", Kernel: "/k", Initrd: "/i", Memory: 512 << 20, Shared: true, Vsock: true},
		},
		{
			"QEMU by its defaults", "[hypervisor.qemu]\n" + guest + "image = \"/i\"\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", FileServer: "/bin/virtiofsd", Kernel: "/k", Image: "/i", Memory: 2048 << 20, Shared: true, Vsock: true},
		},
		{
			"a memory that Kata ignores", "[hypervisor.qemu]\n" + guest + "default_memory = 160\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", FileServer: "/bin/virtiofsd", Kernel: "/k", Memory: 2048 << 20, Shared: true, Vsock: true},
		},
		{
			"9p", "[hypervisor.qemu]\n" + guest + "shared_fs = \"virtio-9p\"\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", Kernel: "/k", Memory: 2048 << 20, Vsock: true},
		},
		{
			"huge pages", "[hypervisor.qemu]\n" + guest + "enable_hugepages = true\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", FileServer: "/bin/virtiofsd", Kernel: "/k", Memory: 2048 << 20, Vsock: true},
		},
		{
			"Cloud Hypervisor", "[hypervisor.clh]\n" + guest + "shared_fs = \"virtio-fs\"\n",
			vmhost.Guest{Hypervisor: "/bin/vmm", FileServer: "/bin/virtiofsd", Kernel: "/k", Memory: 2048 << 20},
		},
		{"Firecracker", "[hypervisor.firecracker]\n" + guest + "shared_fs = \"none\"\n", vmhost.Guest{Hypervisor: "/bin/vmm", Kernel: "/k", Memory: 2048 << 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(installed(t, map[string]string{"x.toml": c.text}), "x.toml")
			config, err := load(nil, options(t, "config="+file))
			must.Do(t, err)
			if got := config.Needs(); got != c.want {
				t.Errorf("Needs() = %+v, want %+v", got, c.want)
			}
		})
	}
}

// Kata replaces values that it does not accept, without a word. A target must not have a name that its guest contradicts.
func TestSilentDefaults(t *testing.T) {
	defer func(was func() int) { hostCPUs = was }(hostCPUs)
	hostCPUs = func() int { return 2 }
	file := filepath.Join(installed(t, map[string]string{"x.toml": "[hypervisor.qemu]\ndefault_memory = 100\ndefault_vcpus = 4\n"}), "x.toml")
	config, err := load(nil, options(t, "config="+file))
	if err != nil || config.MemoryMiB != 2048 || config.VCPUs != 2 {
		t.Errorf("the guest has %d MiB and %v processors, %v; want 2048 and 2", config.MemoryMiB, config.VCPUs, err)
	}
	for _, option := range []string{"memory=255", "vcpus=3"} {
		if _, err := load(nil, options(t, "config="+file+","+option)); err == nil {
			t.Errorf("%s is accepted", option)
		}
	}
	for _, option := range []string{"memory=256", "vcpus=2"} {
		if _, err := load(nil, options(t, "config="+file+","+option)); err != nil {
			t.Errorf("%s: %v", option, err)
		}
	}
}
