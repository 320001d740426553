package check

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Thresholds of poor states.
const (
	stealSinceBoot = 0.01      // share of all CPU time
	busyShare      = 0.25      // load average per CPU
	busyLeast      = 0.5       // lowest poor load average
	busySample     = 0.05      // share of the CPU time in a sample, during which this program is idle
	swapInUse      = 16 << 20  // bytes
	lowShare       = 0.1       // available memory as a share of all memory
	lowBytes       = 256 << 20 // available memory in bytes
	headroomLeast  = 10        // kelvins below the temperature that slows the CPU
	usualSlackNS   = 50_000    // the kernel's timer slack of a process, in nanoseconds
)

// checks are the properties in the order of a listing. Tunable properties have the names of the settings of a Tuner.
var checks = []check{
	{
		name: "governor", warns: true, read: state.governorReading,
		effect: "the clock follows the load, and short operations look slower than they are",
		source: "Linux, Documentation/admin-guide/pm/cpufreq.rst",
	},
	{
		name: "turbo", warns: true, read: state.turboReading,
		effect: "speed depends on temperature and on how many cores are busy",
		source: "Linux, Documentation/admin-guide/pm/cpufreq.rst, \"Frequency Boost Support\"",
	},
	{
		name: "smt", warns: true, read: state.smtReading,
		effect: "two threads share a core and slow each other",
	},
	{
		name: "cpu-kinds", warns: true, read: state.kindsReading,
		effect: "the speed of a program depends on its CPU",
	},
	{
		name: "thermal", read: state.thermalReading,
		effect: "a hot CPU lowers its clock, so late trials are slower than early ones",
		source: "Linux, Documentation/driver-api/thermal/sysfs-api.rst",
	},
	{
		name: "virtualisation", read: state.virtualReading,
		effect: "a hypervisor schedules the CPUs and handles exits, so times depend on it and on other guests; virtual machines in a guest are nested " +
			"and slower still",
	},
	{
		name: "container", warns: true, read: state.containerReading,
		effect: "native shares the limits, the file system and the rights of that container and is no bare metal, and a daemon of the host sees other files, " +
			"processes and cgroups",
	},
	{
		name: "steal", warns: true, read: state.stealReading,
		effect: "other guests disturb this one",
		source: "proc_stat(5), field steal",
	},
	{
		name: "load", warns: true, read: state.loadReading,
		effect: "other programs are busy and take CPU time and caches from the trials",
	},
	{
		name: "irqbalance", read: state.irqbalanceReading,
		effect: "it moves interrupts between CPUs during a run, so a trial can share its CPU with interrupts that other trials do not have",
		source: "irqbalance(1)",
	},
	{
		name: "swap", warns: true, read: state.swapReading,
		effect: "access to swapped memory is slow",
		source: "Linux, Documentation/admin-guide/sysctl/vm.rst, swappiness",
	},
	{
		name: "memory", warns: true, read: state.memoryReading,
		effect: "the kernel may reclaim during measurements",
	},
	{
		name: "thp", read: state.thpReading,
		effect: "memory arrives in huge pages if free ones exist, so times and memory of a program depend on fragmentation; khugepaged merges pages in the background",
		source: "Linux, Documentation/admin-guide/mm/transhuge.rst",
	},
	{
		name: "ksm", warns: true, read: state.ksmReading,
		effect: "the memory of a container depends on the others and on time",
		source: "Linux, Documentation/admin-guide/mm/ksm.rst",
	},
	{
		name: "favordynmods", read: state.favorReading,
		effect: "the first process that moves to another cgroup waits for an RCU grace period, and later ones may not, so create has two speeds",
		source: "Linux, commit 6a010a49b63a and Documentation/admin-guide/cgroup-v2.rst; with the option fork and exit cost more",
	},
	{
		name: "timer-slack", read: state.slackReading,
		effect: "sleeps and timeouts of the measured programs, which inherit it, end later than usual",
		source: "PR_SET_TIMERSLACK(2const)",
	},
	{
		name: "mitigations", read: state.mitigationReading,
		effect: "entries to the kernel have another cost than on a machine with every mitigation, and runtimes differ in their number of entries",
		source: "Linux, Documentation/admin-guide/hw-vuln",
	},
	{
		name: "battery", warns: true, read: state.batteryReading,
		effect: "firmware saves power and slows the CPU",
	},
	{
		name: "voltage", warns: true, read: state.voltageReading,
		effect: "firmware slows the CPU",
	},
	{
		name: "psi", warns: true, read: state.pressureReading,
		effect: "Touchstone detects fewer disturbed trials",
		source: "Linux, Documentation/accounting/psi.rst",
	},
	{
		name: "memory-controller", warns: true, read: state.controllerReading,
		effect: "memory limits do not work and peak memory is unknown",
	},
}

func (m state) governorReading() reading {
	policies := m.Policies()
	if len(policies) == 0 {
		return unknown("the kernel has no CPU frequency driver; in a virtual machine the hypervisor decides")
	}
	if m.facts.Governor == "" {
		_, r, _ := m.read(path.Join(policies[0], "scaling_governor"), "the driver has no governor")
		return r
	}
	if m.facts.Governor == machine.Performance {
		return good(machine.Performance)
	}
	r := poor(m.facts.Governor, "set performance (cpupower frequency-set -g performance)")
	r.about = "the CPU frequency governor is " + m.facts.Governor
	return r
}

func (m state) turboReading() reading {
	switch m.facts.Turbo {
	case "off":
		return good("off")
	case "on":
		r := poor("on", "switch it off for comparisons ("+m.turboAdvice()+")")
		r.about = "CPU turbo is on"
		return r
	}
	for _, file := range []string{machine.NoTurbo, machine.Boost} {
		if _, r, ok := m.read(file, ""); !ok && r.rating == Unreadable {
			return r
		}
	}
	return unknown("the kernel has no switch for it; in a virtual machine the hypervisor decides")
}

func (m state) turboAdvice() string {
	if m.Text(machine.NoTurbo) != "" {
		return "echo 1 > /" + machine.NoTurbo
	}
	return "echo 0 > /" + machine.Boost
}

func (m state) smtReading() reading {
	active, r, ok := m.read("sys/devices/system/cpu/smt/active", "the kernel does not report threads of cores")
	switch {
	case !ok:
		return r
	case active != "1" && m.facts.SMT == "":
		return good("off")
	case active != "1":
		return good(m.facts.SMT)
	}
	r = poor("on", "small differences are clearer with it off (echo off > /"+machine.SMT+")")
	r.about = "SMT is on"
	return r
}

func (m state) kindsReading() reading {
	kinds, ranked := m.Kinds()
	if kinds == nil {
		return good("all CPUs are alike, as far as the kernel reports")
	}
	first, last := kinds[0], kinds[len(kinds)-1]
	text := fmt.Sprintf("%d kinds, and %s are slower than %s", len(kinds), first, last)
	if !ranked {
		text = fmt.Sprintf("%d designs, %s and %s, of unknown speed", len(kinds), first, last)
	}
	r := poor(text, fmt.Sprintf("pin the workload to one kind (--pin workload=%s)", last))
	r.about = "the CPUs are of " + text
	return r
}

func (m state) virtualReading() reading {
	text := m.facts.NatureText()
	nature := m.facts.Nature()
	switch flags := " " + m.CPUInfo()["flags"] + " "; {
	case m.Exists("sys/module/kvm_pvm"):
		text += "; its own KVM is paravirtual (module kvm_pvm)"
	case nature != result.Physical && (strings.Contains(flags, " vmx ") || strings.Contains(flags, " svm ")):
		text += "; it can run nested virtual machines"
	}
	switch nature {
	case result.Physical:
		return good(text)
	case result.Emulated, result.GuestOrEmulated:
		return poor(text, "check features and failures here, and measure on a real machine")
	case result.Guest:
	}
	return poor(text, "measure on bare metal or on a dedicated instance; otherwise compare only targets of one run, with more blocks")
}

func (m state) stealReading() reading {
	times, ok := m.CPUTimes()
	switch {
	case !ok || times.Total == 0:
		return unknown("/proc/stat has no times of the CPUs")
	case m.facts.Virtual == "":
		return good("no hypervisor found")
	case times.Steal == 0 && !m.countsSteal():
		return unknown("this hypervisor may not report the time that it withholds")
	}
	boot := float64(times.Steal) / float64(times.Total)
	share := fmt.Sprintf("%.1f %% of the CPU time since boot", 100*boot)
	if m.sample != nil {
		share += fmt.Sprintf(", %.1f %% now", 100*m.sample.steal)
	}
	if boot <= stealSinceBoot && (m.sample == nil || m.sample.steal <= machine.StealMark) {
		return good(share)
	}
	r := poor(share, "use a dedicated machine, or more blocks")
	r.about = "the hypervisor has withheld " + share
	return r
}

// countsSteal reports whether a counter of zero means that nothing was withheld. Only on x86 do most hypervisors count.
func (m state) countsSteal() bool {
	_, isX86 := m.CPUInfo()["flags"]
	return isX86
}

func (m state) loadReading() reading {
	text, r, ok := m.read("proc/loadavg", "/proc/loadavg does not exist")
	if !ok {
		return r
	}
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return unknown("/proc/loadavg has no number")
	}
	summary := fmt.Sprintf("load average %.2f on %s", load, wording.Counted(m.facts.CPUs, "CPU"))
	if m.sample != nil {
		summary += fmt.Sprintf(", %.0f %% of the CPU time in use", 100*m.sample.busy)
	}
	if load <= max(busyLeast, busyShare*float64(m.facts.CPUs)) && (m.sample == nil || m.sample.busy <= busySample) {
		return good(summary)
	}
	r = poor(summary, "stop them or wait")
	r.about = fmt.Sprintf("the load average is %.2f on %s before the run", load, wording.Counted(m.facts.CPUs, "CPU"))
	return r
}

func (m state) swapReading() reading {
	total, hasSwap := m.memory["SwapTotal"]
	switch bytes := total - m.memory["SwapFree"]; {
	case !hasSwap:
		return unknown("/proc/meminfo has no SwapTotal")
	case total == 0:
		return good("none")
	case bytes > swapInUse:
		amount := fmt.Sprintf("%d MiB", bytes>>20)
		r := poor(amount+" in use", "free memory, then swapoff -a && swapon -a")
		r.about = amount + " of swap are in use"
		return r
	}
	swappiness, r, ok := m.read(machine.Swappiness, "the kernel has no swappiness")
	switch {
	case !ok:
		return r
	case swappiness == "0":
		return good("not in use, swappiness 0")
	}
	r = poor(fmt.Sprintf("not in use, swappiness %s", swappiness), "keep the kernel from swapping early (sysctl vm.swappiness=0)")
	return r
}

func (m state) memoryReading() reading {
	available, ok := m.memory["MemAvailable"]
	if !ok {
		return unknown("/proc/meminfo has no MemAvailable")
	}
	amount := fmt.Sprintf("%d MiB", available>>20)
	if available >= lowBytes && float64(available) >= lowShare*float64(m.facts.Memory) {
		return good(amount + " available")
	}
	r := poor(amount+" available", "free memory, or start fewer containers")
	r.about = "only " + amount + " of memory are available"
	return r
}

func (m state) thpReading() reading {
	text, r, ok := m.read(machine.THP, "the kernel has no transparent huge pages")
	switch {
	case !ok:
		return r
	case machine.Choice(text) == "always":
		return poor("always", "give huge pages only to programs that ask for them (echo madvise > /"+machine.THP+")")
	}
	return good(machine.Choice(text))
}

func (m state) ksmReading() reading {
	run, r, ok := m.read(machine.KSM+"run", "the kernel has no KSM")
	switch {
	case !ok:
		return r
	case run != "1":
		return good("off")
	}
	sharing := int64(0)
	if n := m.Number(machine.KSM + "pages_sharing"); n != nil {
		sharing = *n
	}
	r = poor(fmt.Sprintf("on, %s merged", wording.Counted(int(sharing), "page")), "switch it off for figures of memory (echo 2 > /"+machine.KSM+"run)")
	r.about = fmt.Sprintf("KSM merges equal pages (%d now)", sharing)
	return r
}

func (m state) slackReading() reading {
	text, r, ok := m.read("proc/self/timerslack_ns", "Linux before 4.6 does not show it")
	if !ok {
		return r
	}
	ns, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return unknown("/proc/self/timerslack_ns has no number")
	case ns <= usualSlackNS:
		return good(fmt.Sprintf("%d µs", ns/1000))
	}
	return poor(fmt.Sprintf("%d µs, and the kernel's default is %d µs", ns/1000, usualSlackNS/1000),
		"start touchstone from a program with the default slack (in a service of systemd, TimerSlackNSec=50us)")
}

func (m state) mitigationReading() reading {
	files := m.Glob("sys/devices/system/cpu/vulnerabilities/*")
	if len(files) == 0 {
		return unknown("the kernel does not list the vulnerabilities of the CPU")
	}
	var open []string
	for _, file := range files {
		if strings.HasPrefix(m.Text(file), "Vulnerable") {
			open = append(open, path.Base(file))
		}
	}
	if open == nil {
		return good("on for every vulnerability of this CPU")
	}
	return poor("not on, or not all, for "+strings.Join(open, ", "),
		"compare only machines with equal mitigations, which each report lists; microcode of the vendor and a kernel without mitigations=off close most")
}

func (m state) batteryReading() reading {
	if !m.onBattery() {
		return good("not on battery")
	}
	r := poor("on battery", "connect it to the mains")
	r.about = "the machine runs on battery"
	return r
}

// onBattery reports whether a mains adapter exists but is offline, and no other supply is online. It ignores batteries, because the kernel
// also lists the batteries of mice and headsets.
func (m state) onBattery() bool {
	unplugged := false
	for _, dir := range m.Glob("sys/class/power_supply/*") {
		kind, online := m.Text(path.Join(dir, "type")), m.Text(path.Join(dir, "online"))
		switch {
		case online == "1" && (kind == "Mains" || strings.HasPrefix(kind, "USB")):
			return false
		case online == "0" && kind == "Mains":
			unplugged = true
		}
	}
	return unplugged
}

func (m state) voltageReading() reading {
	file := m.VoltageAlarm()
	if file == "" {
		return unknown("only a Raspberry Pi has this sensor")
	}
	alarm, r, ok := m.read(file, "the sensor has no alarm")
	switch {
	case !ok:
		return r
	case alarm != "1":
		return good("sufficient")
	}
	r = poor("too low", "use a stronger supply or cable")
	r.about = "the power supply's voltage is too low"
	return r
}

func (m state) pressureReading() reading {
	if m.Text("proc/pressure/cpu") != "" {
		return good("offered")
	}
	r := poor("not offered", "boot with psi=1 if the kernel has it built in")
	r.about = "the kernel offers no pressure information (PSI)"
	return r
}

func (m state) controllerReading() reading {
	if m.groups == nil || m.groups.Mode == cgroup.None {
		return unknown("no cgroup file system is mounted, or the mounts cannot be read")
	}
	refusal := m.groups.Refusal("memory")
	if refusal == nil {
		return good("offered")
	}
	r := poor("not offered", refusal.Remedy)
	if _, ok := m.groups.Controller("memory"); ok {
		r.now = "offered, and not passed on"
	}
	r.about = refusal.Cause
	return r
}

func (m state) containerReading() reading {
	kind := m.facts.Container
	if kind == "" {
		return good("this program runs in no container")
	}
	r := poor(kind, ContainerRemedy(kind))
	r.about = "Touchstone itself runs in a container (" + kind + ")"
	if facts.SeesHost(m.Tree) {
		r.now += ", with the processes and the cgroups of the host"
		r.about += " that has the processes and the cgroups of the host"
		r.effect = "native and the runtimes still have the files and the rights of that container, such as its filter of system calls, and its limits hold for " +
			"Touchstone itself"
		r.remedy = "start Touchstone on the host; otherwise give that container no limits, all rights, and the directories /run and /var/lib/touchstone of the host"
	}
	return r
}

// ContainerRemedy returns the way to the host, or to the rights that a measurement needs, from a container of a kind that facts.Container returns.
func ContainerRemedy(kind string) string {
	const directories = "with the directories /run, /var/lib/touchstone and /sys/fs/cgroup of the host at the same paths"
	switch kind {
	case "docker", "podman", "podman or CRI-O", "containerd", "oci":
		return "start Touchstone on the host; otherwise with --privileged --pid=host --cgroupns=host --network=host, and " + directories
	case "kubernetes", "CRI-O":
		return "start Touchstone on the node; otherwise in a privileged container of a pod with hostPID and hostNetwork, and " + directories
	case "wsl":
		return "start Touchstone on Linux without WSL; otherwise compare only targets of one run"
	}
	return "start Touchstone on the host, outside of that container"
}
