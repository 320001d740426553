package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// memoryTolerance is the largest difference in MemTotal between kernels on one machine, as a share. Each kernel reserves a
// different part of the memory.
const memoryTolerance = 0.03

// UnknownHost is the host name of runs from files without facts about a machine.
const UnknownHost = "unknown"

// IsKnown reports whether the facts about the host are known. A run that another program measured has none.
func (h *Host) IsKnown() bool { return h.CPUs > 0 }

// SameMachine reports whether two runs were made on one machine, judged by their facts: name, architecture, model and number of
// CPUs, hypervisor, memory within memoryTolerance, identity, and the name in a cluster. It is the only definition; every comparison of absolute times across runs
// uses it.
//
// The name alone is not enough, since many machines keep the name of their image. A name such as localhost proves nothing, so such machines
// need an equal identity. Kernel, cgroup mode, governor and similar facts do not count: users change them on one machine to see the
// difference. A machine with unknown CPU or memory equals no other machine.
func (h *Host) SameMachine(second *Host) bool {
	if h.CPU == "" || h.Memory <= 0 || second.Memory <= 0 {
		return false
	}
	lower, upper := min(h.Memory, second.Memory), max(h.Memory, second.Memory)
	return h.Hostname == second.Hostname && h.Arch == second.Arch && h.CPU == second.CPU && h.CPUs == second.CPUs &&
		h.Virtual == second.Virtual && float64(upper-lower) <= memoryTolerance*float64(upper) &&
		!h.Identity.Contradicts(second.Identity) && !h.Node.contradicts(second.Node) && (!h.unnamed() || h.Identity.proves(second.Identity))
}

// unnamed reports whether the host name is none, or one that systems and images give to every machine.
func (h *Host) unnamed() bool {
	name, _, _ := strings.Cut(strings.ToLower(h.Hostname), ".")
	return slices.Contains(commonNames, name)
}

// commonNames are the default names of systems and images, without a domain.
var commonNames = []string{
	"", "(none)", "localhost", "localhost4", "localhost6", "unknown", "linux", "debian", "ubuntu", "fedora", "centos", "rocky", "almalinux", "rhel", "alpine",
	"archlinux", "arch", "nixos", "opensuse", "raspberrypi", "buildroot", "openwrt", "docker-desktop", "linuxkit", "vagrant",
}

// Identity has digests of values that each machine has for itself. Their key is secret and of the machine, so they show equality and
// nothing else. An empty digest is unknown.
type Identity struct {
	System string `json:"system,omitempty"` // of the installation; copies of an image may share it
	Board  string `json:"board,omitempty"`  // of the hardware, or of the virtual hardware
	Boot   string `json:"boot,omitempty"`   // of the time since the last start of the kernel
}

// Contradicts reports whether two identities are of different machines.
func (i *Identity) Contradicts(second *Identity) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return i != nil && second != nil && (differ(i.System, second.System) || differ(i.Board, second.Board))
}

// proves reports whether two identities that do not contradict each other are of one machine: one boot, or one system on one board.
func (i *Identity) proves(second *Identity) bool {
	matches := func(a, b string) bool { return a != "" && a == b }
	return i != nil && second != nil && (matches(i.Boot, second.Boot) || matches(i.System, second.System) && matches(i.Board, second.Board))
}

// Settings are facts of the kernel and the firmware that change the times of starts, as the kernel spells them. An unknown one is empty.
type Settings struct {
	Microcode     string `json:"microcode,omitempty"`
	Scaling       string `json:"frequency_scaling,omitempty"` // driver and preference
	Idle          string `json:"idle,omitempty"`              // driver and governor of idle states
	Clock         string `json:"clock_source,omitempty"`
	Preemption    string `json:"preemption,omitempty"`
	NUMABalancing string `json:"numa_balancing,omitempty"`
	BPFJIT        string `json:"bpf_jit,omitempty"` // of seccomp filters
}

// Storage is the file system of a directory of a run.
type Storage struct {
	Use        string `json:"use"` // "results", "containers", "state" or "root"
	FileSystem string `json:"file_system"`
}

// StorageText lists the file systems: "results ext4, containers overlay". It is empty without any.
func (h *Host) StorageText() string {
	var parts []string
	for _, s := range h.Storage {
		parts = append(parts, s.Use+" "+s.FileSystem)
	}
	return strings.Join(parts, ", ")
}

// Reclaim is the state of a machine's memory when the run began, and the kernel's settings that decide which memory is charged,
// merged, compressed or swapped. A nil or empty field is unknown.
type Reclaim struct {
	Available *int64 `json:"available_bytes,omitempty"` // MemAvailable
	SwapUsed  *int64 `json:"swap_used_bytes,omitempty"`
	// Swappiness is vm.swappiness.
	Swappiness *int64 `json:"swappiness,omitempty"`
	// Overcommit is vm.overcommit_memory: 0 is heuristic, 1 is always, 2 is strict with OvercommitRatio percent of the memory.
	Overcommit      *int64 `json:"overcommit_memory,omitempty"`
	OvercommitRatio *int64 `json:"overcommit_ratio,omitempty"`
	// THP and THPDefrag are the selected modes of transparent huge pages: "always", "madvise", "never" and the like.
	THP       string `json:"thp,omitempty"`
	THPDefrag string `json:"thp_defrag,omitempty"`
	// KSM is the state of the merging of equal pages: 0 is off, 1 is on, 2 is off with all pages separated. KSMSharing is the number of pages
	// that share another one.
	KSM        *int64 `json:"ksm_run,omitempty"`
	KSMSharing *int64 `json:"ksm_pages_sharing,omitempty"`
	// Zswap reports whether the kernel compresses pages in memory instead of writing them to the swap device.
	Zswap *bool `json:"zswap,omitempty"`
}

// Tuned is a setting that touchstone host tune has changed. Different values of its parts, such as the governors of several CPUs, are
// separated by commas.
type Tuned struct {
	Setting string `json:"setting"`
	Before  string `json:"before"`
	After   string `json:"after"`
}

// TunedText lists the changed settings: "governor from powersave to performance, ksm from 1 to 0". It is empty without any.
func (h *Host) TunedText() string {
	var parts []string
	for _, t := range h.Tuned {
		parts = append(parts, fmt.Sprintf("%s from %s to %s", t.Setting, t.Before, t.After))
	}
	return strings.Join(parts, ", ")
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

// MayBeEmulated reports whether the CPU is, or may be, a program. Figures of speed from such a machine mislead.
func (h *Host) MayBeEmulated() bool {
	n := h.Nature()
	return n == Emulated || n == GuestOrEmulated
}

// Nature returns the nature of the machine. QEMU without a hypervisor emulates. On x86 a KVM guest would have KVM's clock and be
// called kvm, unless KVM itself runs on an emulated CPU, whose name the guest sees. On other architectures only the CPU can reveal emulation, unless QEMU imitates an existing CPU. Arm reserves
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
		if product, ok := strings.CutPrefix(h.Virtual, "not identified"); ok {
			return "guest of a hypervisor that is not identified" + product
		}
		return "guest of " + h.Virtual
	case Emulated:
		if h.Virtual != "" && !strings.HasPrefix(h.Virtual, "qemu") {
			return "guest of " + h.Virtual + " on a CPU that qemu emulates"
		}
		return "emulated by " + cmp.Or(h.Virtual, "qemu")
	case GuestOrEmulated:
		return fmt.Sprintf("guest of %s, and perhaps emulated", h.Virtual)
	}
	return "no hypervisor found"
}

// Node is the part of a machine in a cluster run.
type Node struct {
	// Fleet is the ID of the cluster run. All nodes of it share the ID.
	Fleet string `json:"fleet"`
	// Name is the name of the node in its cluster. An anonymous run has none.
	Name string `json:"name,omitempty"`
	// Kind groups equal nodes: the instance type, or else the architecture and the size of the machine.
	Kind string `json:"kind,omitempty"`
	// Kubelet and Engine are the versions of the kubelet and of the container engine, as the node reports them.
	Kubelet string `json:"kubelet,omitempty"`
	Engine  string `json:"engine,omitempty"`
	// Labels are the labels of the node that may explain its speed, such as the zone. An anonymous run has none.
	Labels map[string]string `json:"labels,omitempty"`
}

// contradicts reports whether two nodes are different machines. Agents may share a host name, and nodes of one cluster do not share a name.
func (n *Node) contradicts(second *Node) bool {
	return n != nil && second != nil && n.Name != second.Name
}

// maxNodeLabels bounds the labels of a node.
const maxNodeLabels = 100

func (n *Node) validate() error {
	if n == nil {
		return nil
	}
	if !idPattern.MatchString(n.Fleet) {
		return fmt.Errorf("the fleet %.100q of its node is no ID: it needs letters, digits, '-', '_' and '.', at most %d", n.Fleet, maxID)
	}
	if len(n.Labels) > maxNodeLabels {
		return fmt.Errorf("its node has %d labels; %d are allowed", len(n.Labels), maxNodeLabels)
	}
	texts := slices.AppendSeq(slices.Collect(maps.Keys(n.Labels)), maps.Values(n.Labels))
	for _, text := range append(texts, n.Name, n.Kind, n.Kubelet, n.Engine) {
		if len(text) > MaxCondition {
			return fmt.Errorf("its node has a name of %d bytes; %d are allowed", len(text), MaxCondition)
		}
	}
	return nil
}

// Selfcheck is the result of the last touchstone selfcheck on a machine.
type Selfcheck struct {
	Date time.Time `json:"date"`
	// Version is the version of Touchstone.
	Version string `json:"version"`
	// Target and Metric say what was measured, such as CreateAndRun on oci/crun.
	Target string `json:"target"`
	Metric string `json:"metric"`
	// Limits are in ascending order of time.
	Limits []DetectionLimit `json:"limits,omitempty"`
}

// maxDetectionLimits bounds the limits of a selfcheck.
const maxDetectionLimits = 100

// DetectionLimit is the smallest delay that a comparison of two targets shows in a number of minutes with a probability
// of 80 %, as a share of the median: 0.03 is 3 %.
type DetectionLimit struct {
	Minutes    int     `json:"minutes"`
	Difference float64 `json:"difference"`
}
