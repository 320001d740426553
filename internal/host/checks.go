package host

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/result"
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
		name: "governor", warns: true, read: machine.governorReading,
		effect: "the clock follows the load, and short operations look slower than they are",
		source: "Linux, Documentation/admin-guide/pm/cpufreq.rst",
	},
	{
		name: "turbo", warns: true, read: machine.turboReading,
		effect: "speed depends on temperature and on how many cores are busy",
		source: "Linux, Documentation/admin-guide/pm/cpufreq.rst, \"Frequency Boost Support\"",
	},
	{
		name: "smt", warns: true, read: machine.smtReading,
		effect: "two threads share a core and slow each other",
	},
	{
		name: "cpu-kinds", warns: true, read: machine.kindsReading,
		effect: "the speed of a program depends on its CPU",
	},
	{
		name: "thermal", read: machine.thermalReading,
		effect: "a hot CPU lowers its clock, so late trials are slower than early ones",
		source: "Linux, Documentation/driver-api/thermal/sysfs-api.rst",
	},
	{
		name: "virtualisation", read: machine.virtualReading,
		effect: "a hypervisor schedules the CPUs and handles exits, so times depend on it and on other guests; virtual machines in a guest are nested " +
			"and slower still",
	},
	{
		name: "container", warns: true, read: machine.containerReading,
		effect: "native shares the limits, the file system and the rights of that container and is no bare metal, and a daemon of the host sees other files, " +
			"processes and cgroups",
	},
	{
		name: "steal", warns: true, read: machine.stealReading,
		effect: "other guests disturb this one",
		source: "proc_stat(5), field steal",
	},
	{
		name: "load", warns: true, read: machine.loadReading,
		effect: "other programs are busy and take CPU time and caches from the trials",
	},
	{
		name: "irqbalance", read: machine.irqbalanceReading,
		effect: "it moves interrupts between CPUs during a run, so a trial can share its CPU with interrupts that other trials do not have",
		source: "irqbalance(1)",
	},
	{
		name: "swap", warns: true, read: machine.swapReading,
		effect: "access to swapped memory is slow",
		source: "Linux, Documentation/admin-guide/sysctl/vm.rst, swappiness",
	},
	{
		name: "memory", warns: true, read: machine.memoryReading,
		effect: "the kernel may reclaim during measurements",
	},
	{
		name: "thp", read: machine.thpReading,
		effect: "memory arrives in huge pages if free ones exist, so times and memory of a program depend on fragmentation; khugepaged merges pages in the background",
		source: "Linux, Documentation/admin-guide/mm/transhuge.rst",
	},
	{
		name: "ksm", warns: true, read: machine.ksmReading,
		effect: "the memory of a container depends on the others and on time",
		source: "Linux, Documentation/admin-guide/mm/ksm.rst",
	},
	{
		name: "favordynmods", read: machine.favorReading,
		effect: "the first process that moves to another cgroup waits for an RCU grace period, and later ones may not, so create has two speeds",
		source: "Linux, commit 6a010a49b63a and Documentation/admin-guide/cgroup-v2.rst; with the option fork and exit cost more",
	},
	{
		name: "timer-slack", read: machine.slackReading,
		effect: "sleeps and timeouts of the measured programs, which inherit it, end later than usual",
		source: "PR_SET_TIMERSLACK(2const)",
	},
	{
		name: "mitigations", read: machine.mitigationReading,
		effect: "entries to the kernel have another cost than on a machine with every mitigation, and runtimes differ in their number of entries",
		source: "Linux, Documentation/admin-guide/hw-vuln",
	},
	{
		name: "battery", warns: true, read: machine.batteryReading,
		effect: "firmware saves power and slows the CPU",
	},
	{
		name: "voltage", warns: true, read: machine.voltageReading,
		effect: "firmware slows the CPU",
	},
	{
		name: "psi", warns: true, read: machine.pressureReading,
		effect: "Touchstone detects fewer disturbed trials",
		source: "Linux, Documentation/accounting/psi.rst",
	},
	{
		name: "memory-controller", warns: true, read: machine.controllerReading,
		effect: "memory limits do not work and peak memory is unknown",
	},
}

func (m machine) governorReading() reading {
	policies := m.policies()
	if len(policies) == 0 {
		return unknown("the kernel has no CPU frequency driver; in a virtual machine the hypervisor decides")
	}
	if m.facts.Governor == "" {
		_, r, _ := m.value(path.Join(policies[0], "scaling_governor"), "the driver has no governor")
		return r
	}
	if m.facts.Governor == performance {
		return good(performance)
	}
	r := poor(m.facts.Governor, "set performance (cpupower frequency-set -g performance)")
	r.about = "the CPU frequency governor is " + m.facts.Governor
	return r
}

func (m machine) turboReading() reading {
	switch m.facts.Turbo {
	case "off":
		return good("off")
	case "on":
		r := poor("on", "switch it off for comparisons ("+m.turboAdvice()+")")
		r.about = "CPU turbo is on"
		return r
	}
	for _, file := range []string{noTurboFile, boostFile} {
		if _, r, ok := m.value(file, ""); !ok && r.rating == Unreadable {
			return r
		}
	}
	return unknown("the kernel has no switch for it; in a virtual machine the hypervisor decides")
}

func (t tree) turboAdvice() string {
	if t.text(noTurboFile) != "" {
		return "echo 1 > /" + noTurboFile
	}
	return "echo 0 > /" + boostFile
}

func (m machine) smtReading() reading {
	active, r, ok := m.value("sys/devices/system/cpu/smt/active", "the kernel does not report threads of cores")
	switch {
	case !ok:
		return r
	case active != "1" && m.facts.SMT == "":
		return good("off")
	case active != "1":
		return good(m.facts.SMT)
	}
	r = poor("on", "small differences are clearer with it off (echo off > /"+smtControl+")")
	r.about = "SMT is on"
	return r
}

func (m machine) kindsReading() reading {
	kinds, ranked := m.kinds()
	if kinds == nil {
		return good("all CPUs are alike, as far as the kernel reports")
	}
	slow, fast := kinds[0], kinds[len(kinds)-1]
	now := fmt.Sprintf("%d kinds, and %s are slower than %s", len(kinds), slow, fast)
	if !ranked {
		now = fmt.Sprintf("%d designs, %s and %s, of unknown speed", len(kinds), slow, fast)
	}
	r := poor(now, fmt.Sprintf("pin the workload to one kind (--pin workload=%s)", fast))
	r.about = "the CPUs are of " + now
	return r
}

func (m machine) virtualReading() reading {
	now := m.facts.NatureText()
	nature := m.facts.Nature()
	switch flags := " " + m.cpuinfo()["flags"] + " "; {
	case m.exists("sys/module/kvm_pvm"):
		now += "; its own KVM is paravirtual (module kvm_pvm)"
	case nature != result.Physical && (strings.Contains(flags, " vmx ") || strings.Contains(flags, " svm ")):
		now += "; it can run nested virtual machines"
	}
	switch nature {
	case result.Physical:
		return good(now)
	case result.Emulated, result.GuestOrEmulated:
		return poor(now, "check features and failures here, and measure on a real machine")
	case result.Guest:
	}
	return poor(now, "measure on bare metal or on a dedicated instance; otherwise compare only targets of one run, with more blocks")
}

func (m machine) stealReading() reading {
	times, ok := m.cpuTimes()
	switch {
	case !ok || times.total == 0:
		return unknown("/proc/stat has no times of the CPUs")
	case m.facts.Virtual == "":
		return good("no hypervisor found")
	case times.steal == 0 && !m.countsSteal():
		return unknown("this hypervisor may not report the time that it withholds")
	}
	boot := float64(times.steal) / float64(times.total)
	now := fmt.Sprintf("%.1f %% of the CPU time since boot", 100*boot)
	if m.sample != nil {
		now += fmt.Sprintf(", %.1f %% now", 100*m.sample.steal)
	}
	if boot <= stealSinceBoot && (m.sample == nil || m.sample.steal <= stealMark) {
		return good(now)
	}
	r := poor(now, "use a dedicated machine, or more blocks")
	r.about = "the hypervisor has withheld " + now
	return r
}

// countsSteal reports whether a counter of zero means that nothing was withheld. Only on x86 do most hypervisors count.
func (m machine) countsSteal() bool {
	_, isX86 := m.cpuinfo()["flags"]
	return isX86
}

func (m machine) loadReading() reading {
	text, r, ok := m.value("proc/loadavg", "/proc/loadavg does not exist")
	if !ok {
		return r
	}
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return unknown("/proc/loadavg has no number")
	}
	now := fmt.Sprintf("load average %.2f on %d CPUs", load, m.facts.CPUs)
	if m.sample != nil {
		now += fmt.Sprintf(", %.0f %% of the CPU time in use", 100*m.sample.busy)
	}
	if load <= max(busyLeast, busyShare*float64(m.facts.CPUs)) && (m.sample == nil || m.sample.busy <= busySample) {
		return good(now)
	}
	r = poor(now, "stop them or wait")
	r.about = fmt.Sprintf("the load average is %.2f on %d CPUs before the run", load, m.facts.CPUs)
	return r
}

func (m machine) swapReading() reading {
	total, known := m.memory["SwapTotal"]
	switch used := total - m.memory["SwapFree"]; {
	case !known:
		return unknown("/proc/meminfo has no SwapTotal")
	case total == 0:
		return good("none")
	case used > swapInUse:
		now := fmt.Sprintf("%d MiB", used>>20)
		r := poor(now+" in use", "free memory, then swapoff -a && swapon -a")
		r.about = now + " of swap are in use"
		return r
	}
	swappiness, r, ok := m.value(swappinessFile, "the kernel has no swappiness")
	switch {
	case !ok:
		return r
	case swappiness == "0":
		return good("not in use, swappiness 0")
	}
	r = poor(fmt.Sprintf("not in use, swappiness %s", swappiness), "keep the kernel from swapping early (sysctl vm.swappiness=0)")
	return r
}

func (m machine) memoryReading() reading {
	available, known := m.memory["MemAvailable"]
	if !known {
		return unknown("/proc/meminfo has no MemAvailable")
	}
	now := fmt.Sprintf("%d MiB", available>>20)
	if available >= lowBytes && float64(available) >= lowShare*float64(m.facts.Memory) {
		return good(now + " available")
	}
	r := poor(now+" available", "free memory, or start fewer containers")
	r.about = "only " + now + " of memory are available"
	return r
}

func (m machine) thpReading() reading {
	text, r, ok := m.value(thpFile, "the kernel has no transparent huge pages")
	switch {
	case !ok:
		return r
	case choice(text) == "always":
		return poor("always", "give huge pages only to programs that ask for them (echo madvise > /"+thpFile+")")
	}
	return good(choice(text))
}

func (m machine) ksmReading() reading {
	run, r, ok := m.value(ksmDir+"run", "the kernel has no KSM")
	switch {
	case !ok:
		return r
	case run != "1":
		return good("off")
	}
	sharing := int64(0)
	if n := m.number(ksmDir + "pages_sharing"); n != nil {
		sharing = *n
	}
	r = poor(fmt.Sprintf("on, %d pages merged", sharing), "switch it off for figures of memory (echo 2 > /"+ksmDir+"run)")
	r.about = fmt.Sprintf("KSM merges equal pages (%d now)", sharing)
	return r
}

func (m machine) slackReading() reading {
	text, r, ok := m.value("proc/self/timerslack_ns", "Linux before 4.6 does not show it")
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

func (m machine) mitigationReading() reading {
	files := m.glob("sys/devices/system/cpu/vulnerabilities/*")
	if len(files) == 0 {
		return unknown("the kernel does not list the vulnerabilities of the CPU")
	}
	var open []string
	for _, file := range files {
		if strings.HasPrefix(m.text(file), "Vulnerable") {
			open = append(open, path.Base(file))
		}
	}
	if open == nil {
		return good("on for every vulnerability of this CPU")
	}
	return poor("not on, or not all, for "+strings.Join(open, ", "),
		"compare only machines with equal mitigations, which each report lists; microcode of the vendor and a kernel without mitigations=off close most")
}

func (m machine) batteryReading() reading {
	if !m.onBattery() {
		return good("not on battery")
	}
	r := poor("on battery", "connect it to the mains")
	r.about = "the machine runs on battery"
	return r
}

// onBattery reports whether a mains adapter exists but is offline, and no other supply is online. It ignores batteries, because the kernel
// also lists the batteries of mice and headsets.
func (t tree) onBattery() bool {
	unplugged := false
	for _, dir := range t.glob("sys/class/power_supply/*") {
		kind, online := t.text(path.Join(dir, "type")), t.text(path.Join(dir, "online"))
		switch {
		case online == "1" && (kind == "Mains" || strings.HasPrefix(kind, "USB")):
			return false
		case online == "0" && kind == "Mains":
			unplugged = true
		}
	}
	return unplugged
}

func (m machine) voltageReading() reading {
	file := m.voltageAlarm()
	if file == "" {
		return unknown("only a Raspberry Pi has this sensor")
	}
	alarm, r, ok := m.value(file, "the sensor has no alarm")
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

// voltageAlarm returns the alarm file of the Raspberry Pi's voltage sensor (Linux driver raspberrypi-hwmon).
func (t tree) voltageAlarm() string {
	for _, dir := range t.glob("sys/class/hwmon/hwmon*") {
		if t.text(path.Join(dir, "name")) == "rpi_volt" {
			return path.Join(dir, "in0_lcrit_alarm")
		}
	}
	return ""
}

func (m machine) pressureReading() reading {
	if m.text("proc/pressure/cpu") != "" {
		return good("offered")
	}
	r := poor("not offered", "boot with psi=1 if the kernel has it built in")
	r.about = "the kernel offers no pressure information (PSI)"
	return r
}

func (m machine) controllerReading() reading {
	if m.groups == nil || m.groups.Mode == cgroup.None {
		return unknown("no cgroup file system is mounted, or the mounts cannot be read")
	}
	refused := m.groups.Refusal("memory")
	if refused == nil {
		return good("offered")
	}
	r := poor("not offered", refused.Remedy)
	if _, ok := m.groups.Controller("memory"); ok {
		r.now = "offered, and not passed on"
	}
	r.about = refused.Cause
	return r
}

func (t tree) exists(name string) bool {
	_, err := fs.Stat(t.FS, name)
	return err == nil
}
