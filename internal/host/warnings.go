package host

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Thresholds for warnings before a run.
const (
	stealSinceBoot = 0.01      // share of all CPU time
	busyShare      = 0.25      // load average per CPU
	busyLeast      = 0.5       // lowest load average for a warning
	swapInUse      = 16 << 20  // bytes
	lowShare       = 0.1       // available memory as a share of all memory
	lowBytes       = 256 << 20 // available memory in bytes
)

// warnings returns the conditions that make results on this machine less stable or less complete. Each includes a remedy.
func (t tree) warnings(h result.Host, memory map[string]int64, groups *cgroup.Hierarchy) []string {
	var all []string
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }

	if h.Governor != "" && h.Governor != "performance" {
		warn("the CPU frequency governor is %s: the clock follows the load, and short operations look slower than they are; "+
			"set performance (cpupower frequency-set -g performance)", h.Governor)
	}
	if h.Turbo == "on" {
		warn("CPU turbo is on: speed depends on temperature and on how many cores are busy; switch it off for comparisons (%s)", t.turboAdvice())
	}
	if t.text("sys/devices/system/cpu/smt/active") == "1" {
		warn("SMT is on: two threads share a core and slow each other; " +
			"small differences are clearer with it off (echo off > /sys/devices/system/cpu/smt/control)")
	}
	if kinds := t.kinds(); kinds != nil {
		slow, fast := kinds[0], kinds[len(kinds)-1]
		warn("the CPUs are of %d kinds, and %s are slower than %s: the speed of a program depends on its CPU; "+
			"pin the workload to one kind (--pin workload=%s)", len(kinds), slow, fast, fast)
	}
	if share := t.stealShare(); h.Virtual != "" && share > stealSinceBoot {
		warn("the hypervisor has withheld %.1f %% of the CPU time since boot: other guests disturb this one; use a dedicated machine, or more blocks", 100*share)
	}
	load, _, _ := strings.Cut(t.text("proc/loadavg"), " ")
	if load1, err := strconv.ParseFloat(load, 64); err == nil && load1 > max(busyLeast, busyShare*float64(h.CPUs)) {
		warn("the load average is %.2f on %d CPUs before the run: other programs are busy; stop them or wait", load1, h.CPUs)
	}
	if used := memory["SwapTotal"] - memory["SwapFree"]; used > swapInUse {
		warn("%d MiB of swap are in use: access to swapped memory is slow; free memory, then swapoff -a && swapon -a", used>>20)
	}
	available, known := memory["MemAvailable"]
	if known && (available < lowBytes || float64(available) < lowShare*float64(h.Memory)) {
		warn("only %d MiB of memory are available: the kernel may reclaim during measurements; free memory, or start fewer containers", available>>20)
	}
	if text := mergedPages(h.Reclaim); text != "" {
		warn("%s", text)
	}
	if t.onBattery() {
		warn("the machine runs on battery: firmware saves power and slows the CPU; connect it to the mains")
	}
	if t.text(t.voltageAlarm()) == "1" { // the text of no file is empty
		warn("the power supply's voltage is too low: firmware slows the CPU; use a stronger supply or cable")
	}
	if t.text("proc/pressure/cpu") == "" {
		warn("the kernel offers no pressure information (PSI): Touchstone detects fewer disturbed trials; boot with psi=1 if the kernel has it built in")
	}
	if groups != nil && groups.Mode != cgroup.None {
		if _, ok := groups.Controller("memory"); !ok {
			warn("the kernel offers no memory cgroup controller: memory limits do not work and peak memory is unknown; " +
				"boot without cgroup_disable=memory, on a Raspberry Pi with cgroup_enable=memory")
		}
	}
	return all
}

func (t tree) turboAdvice() string {
	if t.text(noTurboFile) != "" {
		return "echo 1 > /" + noTurboFile
	}
	return "echo 0 > /" + boostFile
}

// stealShare returns the share of all CPU time since boot that a hypervisor withheld.
func (t tree) stealShare() float64 {
	times, ok := parseCPUTimes([]byte(t.lines("proc/stat")[0]))
	if !ok || times.total == 0 {
		return 0
	}
	return float64(times.steal) / float64(times.total)
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

// voltageAlarm returns the alarm file of the Raspberry Pi's voltage sensor (Linux driver raspberrypi-hwmon).
func (t tree) voltageAlarm() string {
	for _, dir := range t.glob("sys/class/hwmon/hwmon*") {
		if t.text(path.Join(dir, "name")) == "rpi_volt" {
			return path.Join(dir, "in0_lcrit_alarm")
		}
	}
	return ""
}
