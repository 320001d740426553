package kata

import (
	"runtime"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
)

const (
	// minMemoryMiB is the least memory of a guest that Kata accepts. Below it Kata silently takes defaultMemoryMiB.
	minMemoryMiB     = 256
	defaultMemoryMiB = 2048
)

// Needs lists the requirements of the configuration. Values that the file leaves to Kata's defaults are not checked, except the memory.
func (c *Config) Needs() vmhost.Guest {
	tables, _ := c.values["hypervisor"].(map[string]any)
	vm, _ := tables[c.Hypervisor].(map[string]any)
	g := vmhost.Guest{
		Hypervisor: c.Program, Kernel: c.Kernel, Image: c.Image, Initrd: c.Initrd, Memory: effectiveMemory(c.MemoryMiB) << 20,
		// The other hypervisors offer the sockets of a guest as a Unix socket.
		Vsock: c.Hypervisor == "qemu" || c.Hypervisor == "stratovirt",
	}
	if c.SharedFS == "" || strings.HasPrefix(c.SharedFS, "virtio-fs") {
		g.FileServer = c.FileServer
		hugePages, _ := vm["enable_hugepages"].(bool)
		backend, _ := vm["file_mem_backend"].(string)
		g.Shared = c.Hypervisor == "qemu" && !hugePages && backend == ""
	}
	return g
}

// effectiveMemory returns the memory that Kata gives to a guest, in MiB.
func effectiveMemory(mib int64) int64 {
	if mib < minMemoryMiB {
		return defaultMemoryMiB
	}
	return mib
}

// effectiveVCPUs returns the number of virtual processors that Kata gives to a guest: at most the processors of the host. 0 is Kata's
// default.
func effectiveVCPUs(n float64) float64 {
	if limit := float64(hostCPUs()); n < 0 || n > limit {
		return limit
	}
	return n
}

// hostCPUs is the number of processors that the shim may use. Tests replace it.
var hostCPUs = runtime.NumCPU
