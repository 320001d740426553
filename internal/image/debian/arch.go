package debian

import (
	"debug/elf"
	"maps"
	"slices"
)

// architecture is what differs between architectures.
type architecture struct {
	machine elf.Machine
	triplet string // the directory of libraries
}

// architectures are those for which there is an image, by Go's names; Debian's are the same.
var architectures = map[string]architecture{
	"amd64":   {elf.EM_X86_64, "x86_64-linux-gnu"},
	"arm64":   {elf.EM_AARCH64, "aarch64-linux-gnu"},
	"riscv64": {elf.EM_RISCV, "riscv64-linux-gnu"},
}

// Architectures are those for which there is an image, as Go names them.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }
