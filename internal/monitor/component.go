package monitor

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Component is a part of what a target runs on the host.
type Component string

// The components there are.
const (
	// Daemon is a service that was there before, and programs of no other component that it calls.
	Daemon Component = "daemon"
	// Engine is an engine that is called for each step and ends again: Podman.
	Engine Component = "engine"
	// Shim is a process of the engine's beside each container or pod.
	Shim Component = "shim"
	// Monitor is conmon, the shim of Podman and CRI-O.
	Monitor Component = "monitor"
	// Runtime is a call of the low-level runtime, with what it starts before the container.
	Runtime Component = "runtime"
	// Sandbox is what a container runs in and is not the host's kernel: gVisor's kernel with its
	// file servers and the processes it runs programs in, a hypervisor with its, a pod's pause process.
	Sandbox Component = "sandbox"
	// Network is network plug-ins and what they call.
	Network Component = "network"
	// Container is the container's own processes. The first one was the runtime's before it became the
	// container's program, and that part of its cost is here too.
	Container Component = "container"
	// Other is what belongs to the target and to none of the above.
	Other Component = "other"
)

// Components lists all components, in the order in which they are shown.
func Components() []Component {
	return []Component{Daemon, Engine, Shim, Monitor, Runtime, Sandbox, Network, Container, Other}
}

// names are the programs of components, by the name that the kernel has for their processes.
var names = map[Component][]string{
	Daemon:  {"containerd", "dockerd", "crio"},
	Engine:  {"podman", "ctr", "nerdctl", "crictl", "docker"},
	Monitor: {"conmon", "conmonrs"},
	Runtime: {"runc", "crun", "youki", "runsc", "kata-runtime", "rune"},
	Sandbox: {
		"runsc-sandbox", "runsc-gofer", "gvisor-sentry", "gvisor-gofer",
		"qemu-system-x86_64", "qemu-system-aarch64", "qemu-system-riscv64", "qemu-kvm", "cloud-hypervisor", "firecracker", "jailer",
		"stratovirt", "virtiofsd", "nydusd", "pause", "catatonit",
	},
	// Those of Docker and Podman; plugins are others.
	Network: {"aardvark-dns", "docker-proxy", "netavark", "pasta", "pasta.avx2", "slirp4netns"},
}

// plugins are the network programs that a daemon or an engine calls and waits for. A container may run a program of
// such a name as its first.
var plugins = []string{
	// The plug-ins of containernetworking.
	"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan",
	"portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
	// Those of clusters.
	"antrea", "aws-cni", "azure-vnet", "calico", "calico-ipam", "cilium-cni", "flannel", "kube-ovn", "kube-router", "multus",
	"multus-shim", "ovn-k8s-cni-overlay", "weave-net", "whereabouts",
	// What they call.
	"conntrack", "ebtables", "ip", "ip6tables", "ip6tables-restore", "ip6tables-save", "ipset", "iptables", "iptables-restore", "iptables-save",
	"nft", "tc", "xtables-legacy-multi", "xtables-nft-multi",
}

// component gives the component whose program has a name.
func component(name string) (Component, bool) {
	switch {
	case name == "":
		return "", false
	case strings.HasPrefix(name, "containerd-shim"):
		return Shim, true
	case strings.HasPrefix(name, "runc:["), strings.HasPrefix(name, "youki:["):
		return Runtime, true // runc's and youki's children on the way to the container
	}
	for _, c := range Components() {
		if among(names[c], name) {
			return c, true
		}
	}
	return "", false
}

// among tells whether a name is one of several, as far as the kernel keeps names.
func among(all []string, name string) bool {
	return slices.ContainsFunc(all, func(n string) bool { return cut(n) == cut(name) })
}

// cut shortens a name to what the kernel keeps of it.
func cut(name string) string { return name[:min(len(name), 15)] }

// process is what is known of one.
type process struct {
	pid, ppid int
	comm      string
	args      []string // of one that was seen alive
	cpu       time.Duration
}

// called gives the names of a process: what it calls itself, if it was seen alive, and the kernel's.
func (p process) called() []string {
	if len(p.args) == 0 {
		return []string{p.comm}
	}
	return []string{filepath.Base(p.args[0]), p.comm}
}

// classify gives the component of a process of a target, by its name and its parent's: "" if the parent is
// Touchstone, to which orphans come, or is not known. runtimes are names of the target's runtime.
func classify(p process, parent Component, parentNames []string, runtimes []string) Component {
	if parent == Container || parent == Sandbox {
		return parent // whatever a program in there is called
	}
	orphan := parent == "" || parent == Shim || parent == Monitor
	for _, name := range p.called() {
		if c, ok := component(name); ok {
			return c
		}
		switch {
		case name == "":
		case among(runtimes, name):
			return Runtime
		case !orphan && among(plugins, name):
			return Network
		}
	}
	switch again := p.comm == "exe"; {
	// A Go program that has called itself. As an orphan it is gVisor's, whose caller has ended.
	case again && (orphan || slices.Contains(parentNames, "runsc")):
		return Sandbox
	case orphan:
		return Container
	default:
		return parent
	}
}
