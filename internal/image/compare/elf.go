package compare

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// headerBytes is the length of the beginning of a file that architecture needs.
const headerBytes = 20

// machines are the architectures of ELF files in Go's naming, by machine, with both word sizes and byte orders.
var machines = map[elf.Machine]map[[2]byte]string{
	elf.EM_386:       {{1, 1}: "386"},
	elf.EM_X86_64:    {{2, 1}: "amd64", {1, 1}: "amd64p32"},
	elf.EM_ARM:       {{1, 1}: "arm", {1, 2}: "armbe"},
	elf.EM_AARCH64:   {{2, 1}: "arm64", {2, 2}: "arm64be"},
	elf.EM_RISCV:     {{2, 1}: "riscv64", {1, 1}: "riscv"},
	elf.EM_PPC64:     {{2, 1}: "ppc64le", {2, 2}: "ppc64"},
	elf.EM_PPC:       {{1, 2}: "ppc"},
	elf.EM_S390:      {{2, 2}: "s390x", {1, 2}: "s390"},
	elf.EM_MIPS:      {{1, 2}: "mips", {1, 1}: "mipsle", {2, 2}: "mips64", {2, 1}: "mips64le"},
	elf.EM_LOONGARCH: {{2, 1}: "loong64"},
	elf.EM_BPF:       {{2, 1}: "bpf", {2, 2}: "bpf"},
}

// architecture returns the architecture of an ELF file by its header (System V ABI, figure 4-3), in Go's naming if that has the
// architecture. It is empty for other files, and for files that are too short.
func architecture(head []byte) string {
	if len(head) < headerBytes || string(head[:len(elf.ELFMAG)]) != elf.ELFMAG {
		return ""
	}
	class, data := head[elf.EI_CLASS], head[elf.EI_DATA]
	var order binary.ByteOrder = binary.LittleEndian
	if data == byte(elf.ELFDATA2MSB) {
		order = binary.BigEndian
	}
	machine := elf.Machine(order.Uint16(head[18:]))
	if name, ok := machines[machine][[2]byte{class, data}]; ok {
		return name
	}
	return fmt.Sprintf("machine-%d", machine)
}
