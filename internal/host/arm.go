package host

import (
	"fmt"
	"strings"
)

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
func (t tree) armCores() string {
	var kinds []armPart
	count := map[armPart]int{}
	var cpu armPart
	for _, line := range t.lines("proc/cpuinfo") {
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
