package machine

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// OnlineCPUs returns the numbers of the online logical CPUs.
func (t Tree) OnlineCPUs() []int {
	if cpus := t.cpuList("sys/devices/system/cpu/online"); len(cpus) > 0 {
		return cpus
	}
	var cpus []int
	for _, line := range t.Lines("proc/stat") {
		name, _, _ := strings.Cut(line, " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if n, err := strconv.Atoi(number); ok && err == nil {
			cpus = append(cpus, n)
		}
	}
	return cpus
}

// cpuList reads a file with a list of CPUs. The list is empty if the file is missing or malformed.
func (t Tree) cpuList(name string) cpuset.Set {
	set, _ := cpuset.Parse(t.Text(name)) // the set is empty after an error
	return set
}

// CPUInfo returns the fields of /proc/cpuinfo by name in lower case. A value is from the first CPU with that field.
func (t Tree) CPUInfo() map[string]string {
	info := map[string]string{}
	for _, line := range t.Lines("proc/cpuinfo") {
		name, value, ok := infoLine(line)
		if _, duplicate := info[name]; ok && !duplicate {
			info[name] = value
		}
	}
	return info
}

// infoLine splits a line of /proc/cpuinfo into its name in lower case and its value.
func infoLine(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	return strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value), ok
}

// CPUModel returns the name of the CPU. On ARM and RISC-V the kernel reports only numbers or the design of the core, so the board's
// name precedes them.
func (t Tree) CPUModel(cpuinfo map[string]string) string {
	if name := cpuinfo["model name"]; name != "" {
		return name
	}
	core := cpuinfo["cpu"] // POWER
	switch {
	case cpuinfo["uarch"] != "":
		core = cpuinfo["uarch"]
	case cpuinfo["cpu part"] != "":
		core = t.armCores()
	case cpuinfo["cpu model"] != "": // MIPS
		core = cpuinfo["cpu model"]
	case core == "":
		core = cpuinfo["isa"]
	}
	board := t.Board("model")
	switch {
	case board == "":
		return core
	case core == "":
		return board
	}
	return board + " (" + core + ")"
}

// Kinds groups the online CPUs by the speed of their cores, slowest first (big.LITTLE, performance and efficiency cores). It returns nil
// if all cores are alike, or if the kernel reports nothing about them. Without a speed the designs make the groups, and ranked is
// false.
func (t Tree) Kinds() (kinds []cpuset.Set, ranked bool) {
	online := cpuset.Set(t.OnlineCPUs())
	// x86 has one performance monitoring unit per kind, the slowest first.
	for _, unit := range []string{"cpu_lowpower", "cpu_atom", "cpu_core"} {
		if cpus := t.cpuList("sys/devices/" + unit + "/cpus").And(online); len(cpus) > 0 {
			kinds = append(kinds, cpus)
		}
	}
	if len(kinds) > 1 {
		return kinds, true
	}
	for _, speed := range []struct {
		file string
		like float64 // the quotient of the speeds of cores of one kind, at most
	}{
		{"cpu_capacity", 1.1},             // the firmware's values for cores of one design can differ by some per cent
		{"cpufreq/cpuinfo_max_freq", 1.2}, // the best cores of one design have a higher turbo
	} {
		if kinds := t.kindsBy(online, speed.file, speed.like); kinds != nil {
			return kinds, true
		}
	}
	return t.designs(online), false
}

// kindsBy groups CPUs by a number that each has in a file. It returns nil for a single group, or if a CPU has no number.
func (t Tree) kindsBy(online cpuset.Set, file string, factor float64) (kinds []cpuset.Set) {
	speed := map[int]int{}
	for _, cpu := range online {
		n, err := strconv.Atoi(t.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", cpu, file)))
		if err != nil {
			return nil
		}
		speed[cpu] = n
	}
	sorted := slices.Clone(online)
	slices.SortStableFunc(sorted, func(a, b int) int { return speed[a] - speed[b] })
	slowest := 0 // lowest speed of the last kind
	for _, cpu := range sorted {
		if len(kinds) == 0 || float64(speed[cpu]) > factor*float64(slowest) {
			kinds, slowest = append(kinds, nil), speed[cpu]
		}
		kinds[len(kinds)-1] = append(kinds[len(kinds)-1], cpu)
	}
	if len(kinds) < 2 {
		return nil
	}
	for _, k := range kinds {
		slices.Sort(k)
	}
	return kinds
}

// designs groups CPUs by the designs of ARM cores in /proc/cpuinfo. It returns nil for a single design.
func (t Tree) designs(online cpuset.Set) (kinds []cpuset.Set) {
	var order []armPart
	groups := map[armPart]cpuset.Set{}
	cpu, core := -1, armPart{}
	for _, line := range t.Lines("proc/cpuinfo") {
		switch name, value, _ := infoLine(line); name {
		case "processor":
			cpu = -1
			if n, err := strconv.Atoi(value); err == nil && slices.Contains(online, n) {
				cpu = n
			}
		case "cpu implementer":
			core.implementer = value
		case "cpu part":
			core.part = value
			if cpu < 0 {
				continue
			}
			if groups[core] == nil {
				order = append(order, core)
			}
			groups[core] = append(groups[core], cpu)
		}
	}
	if len(order) < 2 {
		return nil
	}
	for _, core := range order {
		kinds = append(kinds, groups[core])
	}
	return kinds
}

// Policies returns the directories of the CPU frequency policies. A policy is a group of CPUs with a common frequency.
func (t Tree) Policies() []string {
	return t.Glob("sys/devices/system/cpu/cpufreq/policy*")
}

// Governor returns the frequency governors in use, usually one for all CPUs.
func (t Tree) Governor() string {
	var names []string
	for _, dir := range t.Policies() {
		if name := t.Text(path.Join(dir, "scaling_governor")); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// The switches of turbo and SMT. In Intel's driver 1 means no turbo, in all others 1 means turbo.
const (
	// SMT is the choice of threads; NoTurbo and Boost are 0 or 1.
	SMT     = "sys/devices/system/cpu/smt/control"
	NoTurbo = "sys/devices/system/cpu/intel_pstate/no_turbo"
	Boost   = "sys/devices/system/cpu/cpufreq/boost"
)

// Turbo is "on" or "off", and empty if the kernel has no switch.
func (t Tree) Turbo() string {
	noTurbo, boost := t.Text(NoTurbo), t.Text(Boost)
	switch {
	case noTurbo == "0" || boost == "1":
		return "on"
	case noTurbo == "1" || boost == "0":
		return "off"
	}
	return ""
}

// nominalMHz returns the guaranteed frequency of a policy's CPUs without turbo, or 0 if it is unknown. The sources are Intel's driver and
// the firmware's CPPC table. On a machine without turbo it is the highest frequency.
func (t Tree) nominalMHz(policy string) float64 {
	if kHz, err := strconv.ParseFloat(t.Text(path.Join(policy, "base_frequency")), 64); err == nil {
		return kHz / 1000
	}
	cpu := strings.TrimPrefix(path.Base(policy), "policy") // a policy has the number of its first CPU
	if mhz, err := strconv.ParseFloat(t.Text("sys/devices/system/cpu/cpu"+cpu+"/acpi_cppc/nominal_freq"), 64); err == nil && mhz > 0 {
		return mhz
	}
	kHz, err := strconv.ParseFloat(t.Text(path.Join(policy, "cpuinfo_max_freq")), 64)
	if err != nil || t.Turbo() != "" {
		return 0
	}
	return kHz / 1000
}

// MeanNominalMHz returns the mean over policies, or 0 if it is unknown for one of them.
func (t Tree) MeanNominalMHz(policies []string) float64 {
	var total float64
	for _, policy := range policies {
		mhz := t.nominalMHz(policy)
		if mhz == 0 {
			return 0
		}
		total += mhz
	}
	return total / max(1, float64(len(policies)))
}

// armPart identifies the design of an ARM core: two fields of MIDR_EL1 in the format of /proc/cpuinfo.
type armPart struct{ implementer, part string }

// String returns the name of the core, or its numbers if the name is unknown.
func (p armPart) String() string {
	if name, ok := armParts[p]; ok {
		return name
	}
	return "implementer " + p.implementer + ", part " + p.part
}

// armParts holds the names that lscpu(1) uses, for the cores of boards and servers that run containers.
var armParts = map[armPart]string{
	{"0x41", "0xd01"}: "Cortex-A32",
	{"0x41", "0xd02"}: "Cortex-A34",
	{"0x41", "0xd03"}: "Cortex-A53",
	{"0x41", "0xd04"}: "Cortex-A35",
	{"0x41", "0xd05"}: "Cortex-A55",
	{"0x41", "0xd06"}: "Cortex-A65",
	{"0x41", "0xd07"}: "Cortex-A57",
	{"0x41", "0xd08"}: "Cortex-A72",
	{"0x41", "0xd09"}: "Cortex-A73",
	{"0x41", "0xd0a"}: "Cortex-A75",
	{"0x41", "0xd0b"}: "Cortex-A76",
	{"0x41", "0xd0c"}: "Neoverse-N1",
	{"0x41", "0xd0d"}: "Cortex-A77",
	{"0x41", "0xd0e"}: "Cortex-A76AE",
	{"0x41", "0xd40"}: "Neoverse-V1",
	{"0x41", "0xd41"}: "Cortex-A78",
	{"0x41", "0xd42"}: "Cortex-A78AE",
	{"0x41", "0xd44"}: "Cortex-X1",
	{"0x41", "0xd46"}: "Cortex-A510",
	{"0x41", "0xd47"}: "Cortex-A710",
	{"0x41", "0xd48"}: "Cortex-X2",
	{"0x41", "0xd49"}: "Neoverse-N2",
	{"0x41", "0xd4a"}: "Neoverse-E1",
	{"0x41", "0xd4b"}: "Cortex-A78C",
	{"0x41", "0xd4d"}: "Cortex-A715",
	{"0x41", "0xd4e"}: "Cortex-X3",
	{"0x41", "0xd4f"}: "Neoverse-V2",
	{"0x41", "0xd80"}: "Cortex-A520",
	{"0x41", "0xd81"}: "Cortex-A720",
	{"0x41", "0xd82"}: "Cortex-X4",
	{"0x41", "0xd84"}: "Neoverse-V3",
	{"0x41", "0xd85"}: "Cortex-X925",
	{"0x41", "0xd87"}: "Cortex-A725",
	{"0x41", "0xd8e"}: "Neoverse-N3",
	{"0x43", "0x0af"}: "ThunderX2-99xx",
	{"0x46", "0x001"}: "A64FX",
	{"0x48", "0xd01"}: "Kunpeng-920",
	{"0x4e", "0x004"}: "Carmel",
	{"0x61", "0x022"}: "Icestorm-M1",
	{"0x61", "0x023"}: "Firestorm-M1",
	{"0x61", "0x032"}: "Blizzard-M2",
	{"0x61", "0x033"}: "Avalanche-M2",
	{"0xc0", "0xac3"}: "Ampere-1",
	{"0xc0", "0xac4"}: "Ampere-1a",
}

// armCores returns the names of the cores of an ARM machine, in the order of the CPUs. With several designs (big.LITTLE) each name has the
// number of cores.
func (t Tree) armCores() string {
	var kinds []armPart
	count := map[armPart]int{}
	var cpu armPart
	for _, line := range t.Lines("proc/cpuinfo") {
		switch name, value, _ := infoLine(line); name {
		case "cpu implementer":
			cpu.implementer = value
		case "cpu part":
			cpu.part = value
			if count[cpu]++; count[cpu] == 1 {
				kinds = append(kinds, cpu)
			}
		}
	}
	if len(kinds) == 1 {
		return kinds[0].String()
	}
	var items []string
	for _, k := range kinds {
		items = append(items, fmt.Sprintf("%d × %s", count[k], k))
	}
	return strings.Join(items, " + ")
}

// deviceTrees are the places of the device tree. The first is a link to the second, which a container may lack.
var deviceTrees = []string{"proc/device-tree/", "sys/firmware/devicetree/base/"}

// Board returns a property of the device tree.
func (t Tree) Board(name string) string {
	return cmp.Or(t.Text(deviceTrees[0]+name), t.Text(deviceTrees[1]+name))
}

// HasBoard reports whether the device tree has a property that matches a pattern.
func (t Tree) HasBoard(pattern string) bool {
	return len(t.Glob(deviceTrees[0]+pattern))+len(t.Glob(deviceTrees[1]+pattern)) > 0
}

// Performance is the governor that keeps the highest frequency.
const Performance = "performance"
