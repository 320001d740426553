package monitor

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Component is a part of a target's processes on the host.
type Component string

// The components.
const (
	// Daemon is a service that was running before, and the programs of no other component that it calls.
	Daemon Component = "daemon"
	// Engine is an engine that is called for each step and exits again: Podman.
	Engine Component = "engine"
	// Shim is a process of the engine beside each container or pod.
	Shim Component = "shim"
	// Monitor is conmon, the shim of Podman and CRI-O.
	Monitor Component = "monitor"
	// Runtime is a call of the low-level runtime, with the programs that it starts before the container.
	Runtime Component = "runtime"
	// Sentry is gVisor's kernel, with its processes for the container's programs. A gofer that was never seen alive counts
	// here too, because the kernel's record of its exit has the same name.
	Sentry Component = "sentry"
	// Gofer is gVisor's file server.
	Gofer Component = "gofer"
	// Hypervisor is a virtual machine monitor, with the memory of its guest.
	Hypervisor Component = "hypervisor"
	// FileServer serves the host's files to a virtual machine: virtiofsd.
	FileServer Component = "file server"
	// Proxy connects a shim with the agent in a virtual machine.
	Proxy Component = "agent proxy"
	// Pause is the process that keeps a pod's namespaces.
	Pause Component = "pause"
	// Network is network plug-ins and the programs that they call.
	Network Component = "network"
	// Container is the container's own processes. The first one was the runtime's process before it executed the
	// container's program, and that part of its cost counts here too.
	Container Component = "container"
	// Other is the part of a target's processes that belongs to no component above.
	Other Component = "other"
)

// Components lists all components in display order.
func Components() []Component {
	return []Component{Daemon, Engine, Shim, Monitor, Runtime, Sentry, Gofer, Hypervisor, FileServer, Proxy, Pause, Network, Container, Other}
}

// Sandboxed lists the components that a container's limits bind: its own processes, and the layer between them and the host's
// kernel.
func Sandboxed() []Component {
	return []Component{Sentry, Gofer, Hypervisor, FileServer, Proxy, Pause, Container}
}

// Programs maps components to the names of their programs, as the kernel shows them for processes. Engines and runtimes
// declare them. The kernel keeps 15 bytes of a name, so only these count. A name that ends in "*" matches all names with
// that beginning. A name "PARENT/NAME" matches a child of PARENT, and a process whose parent is not known.
type Programs map[Component][]string

// Add adds the programs of additions to p.
func (p Programs) Add(additions Programs) {
	for c, names := range additions {
		for _, n := range names {
			if !slices.Contains(p[c], n) {
				p[c] = append(p[c], n)
			}
		}
	}
}

// component returns the component of the program with this name.
func (p Programs) component(name string) (Component, bool) {
	if name == "" {
		return "", false
	}
	matches := func(pattern string) bool {
		if start, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, start)
		}
		return cut(pattern) == cut(name)
	}
	for _, c := range Components() {
		if slices.ContainsFunc(p[c], matches) {
			return c, true
		}
	}
	return "", false
}

// child returns the component of a program that is declared as "PARENT/NAME". An orphan's parent has exited.
func (p Programs) child(name string, orphan bool, parentNames []string) (Component, bool) {
	for _, c := range Components() {
		for _, pattern := range p[c] {
			parent, child, ok := strings.Cut(pattern, "/")
			if ok && child == name && (orphan || slices.Contains(parentNames, parent)) {
				return c, true
			}
		}
	}
	return "", false
}

// plugins are the network programs that any daemon or engine may call and wait for. They belong to the standard for network
// plug-ins (CNI) and to the system, and not to an engine. A container may run a program of such a name as its first.
var plugins = []string{
	// The plug-ins of containernetworking.
	"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
	"portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
	// The plug-ins of clusters.
	"antrea", "aws-cni", "azure-vnet", "calico", "calico-ipam", "cilium-cni", "flannel", "kube-ovn", "kube-router", "multus",
	"multus-shim", "ovn-k8s-cni-overlay", "weave-net", "whereabouts",
	// The programs that plug-ins call.
	"conntrack", "ebtables", "ip", "ip6tables", "ip6tables-restore", "ip6tables-save", "ipset", "iptables", "iptables-restore", "iptables-save",
	"nft", "tc", "xtables-legacy-multi", "xtables-nft-multi",
}

// among reports whether a list contains a name, up to the length that the kernel keeps.
func among(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return cut(n) == cut(name) })
}

// cut shortens a name to the length that the kernel keeps.
func cut(name string) string { return name[:min(len(name), 15)] }

// process is one process of the host.
type process struct {
	pid, ppid int
	comm      string
	args      []string // of a process that was seen alive
	cpu       time.Duration
	exe       executed // the file that it executes
	threads   int      // of a living process
	resident  int64    // resident set size of a living process, in bytes
	nested    bool     // in a PID namespace below its parent's; unknown for most processes
}

// names returns the names of a process: its first argument, if it was seen alive, and the kernel's name.
func (p process) names() []string {
	if len(p.args) == 0 {
		return []string{p.comm}
	}
	return []string{filepath.Base(p.args[0]), p.comm}
}

// classify returns the component of a process of the target, by its name and its parent's. The parent's component is ""
// if the parent is Touchstone, which adopts orphans, or is not known.
func (a *Account) classify(p process, parent Component, parentNames []string) Component {
	if parent == Container || parent == Sentry {
		return parent // a program in there may have any name
	}
	orphan := parent == "" || parent == Shim || parent == Monitor || p.nested
	for _, name := range p.names() {
		if c, ok := a.Programs.component(name); ok {
			return c
		}
		switch {
		case name == "":
		case among(a.Runtimes, name):
			return Runtime
		case !orphan && among(plugins, name):
			return Network
		}
	}
	if c, ok := a.Programs.child(p.comm, orphan, parentNames); ok {
		return c
	}
	// A runtime that executes a copy of itself has any name, such as the number of the copy's descriptor.
	if p.exe != (executed{}) && (p.exe == a.executable || p.exe.device == memoryDevice()) {
		return Runtime
	}
	if orphan {
		return Container
	}
	return parent
}
