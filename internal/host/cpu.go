package host

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// onlineCPUs gives the numbers of the logical CPUs that are online.
func (t tree) onlineCPUs() []int {
	if cpus := t.cpuList("sys/devices/system/cpu/online"); len(cpus) > 0 {
		return cpus
	}
	var cpus []int
	for _, line := range t.lines("proc/stat") {
		name, _, _ := strings.Cut(line, " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if n, err := strconv.Atoi(number); ok && err == nil {
			cpus = append(cpus, n)
		}
	}
	return cpus
}

// cpuList reads a file with a list of CPUs. It has none if it is not there or malformed.
func (t tree) cpuList(name string) cpuset.Set {
	set, _ := cpuset.Parse(t.text(name)) // which gives none with an error
	return set
}

// cpuinfo gives the fields of /proc/cpuinfo for the first CPU that has them, by
// their names in lower case.
func (t tree) cpuinfo() map[string]string {
	info := map[string]string{}
	for _, line := range t.lines("proc/cpuinfo") {
		name, value, ok := strings.Cut(line, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := info[name]; ok && !twice {
			info[name] = strings.TrimSpace(value)
		}
	}
	return info
}

// cpuModel names the CPU. x86 has a name for it. On ARM and RISC-V the kernel
// knows only numbers, or the core's design, so the board's name stands first there.
func (t tree) cpuModel(cpuinfo map[string]string) string {
	if name := cpuinfo["model name"]; name != "" {
		return name
	}
	core := cpuinfo["cpu"] // POWER
	switch {
	case cpuinfo["uarch"] != "":
		core = cpuinfo["uarch"]
	case cpuinfo["cpu part"] != "":
		core = "implementer " + cpuinfo["cpu implementer"] + ", part " + cpuinfo["cpu part"]
	case cpuinfo["cpu model"] != "": // MIPS
		core = cpuinfo["cpu model"]
	case core == "":
		core = cpuinfo["isa"]
	}
	board := t.text("proc/device-tree/model")
	switch {
	case board == "":
		return core
	case core == "":
		return board
	}
	return board + " (" + core + ")"
}

// policies are the directories of the CPU frequency policies: groups of CPUs that
// change their frequency together.
func (t tree) policies() []string {
	return t.glob("sys/devices/system/cpu/cpufreq/policy*")
}

// governor gives the frequency governors in use, usually one for all CPUs.
func (t tree) governor() string {
	var names []string
	for _, dir := range t.policies() {
		if name := t.text(path.Join(dir, "scaling_governor")); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// The switches of turbo: Intel's driver says when it is off, all others when it is
// on.
const (
	noTurboFile = "sys/devices/system/cpu/intel_pstate/no_turbo"
	boostFile   = "sys/devices/system/cpu/cpufreq/boost"
)

func (t tree) turbo() string {
	noTurbo, boost := t.text(noTurboFile), t.text(boostFile)
	switch {
	case noTurbo == "0" || boost == "1":
		return "on"
	case noTurbo == "1" || boost == "0":
		return "off"
	}
	return ""
}

// nominalMHz gives the frequency that the CPU promises without turbo, 0 if it is
// not known: what Intel's driver and firmware's CPPC table say, else, on a CPU without
// turbo, the highest frequency.
func (t tree) nominalMHz() float64 {
	policies := t.policies()
	if len(policies) == 0 {
		return 0
	}
	if kHz, err := strconv.ParseFloat(t.text(path.Join(policies[0], "base_frequency")), 64); err == nil {
		return kHz / 1000
	}
	if mhz, err := strconv.ParseFloat(t.text("sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq"), 64); err == nil && mhz > 0 {
		return mhz
	}
	kHz, err := strconv.ParseFloat(t.text(path.Join(policies[0], "cpuinfo_max_freq")), 64)
	if err != nil || t.turbo() != "" {
		return 0
	}
	return kHz / 1000
}
