package debian

import (
	"debug/elf"
	"maps"
	"slices"
)

// architecture has the properties of an architecture.
type architecture struct {
	machine elf.Machine
	triplet string // the directory of libraries
}

// architectures have an image. The keys are Go's names, which are also Debian's.
var architectures = map[string]architecture{
	"amd64":   {elf.EM_X86_64, "x86_64-linux-gnu"},
	"arm64":   {elf.EM_AARCH64, "aarch64-linux-gnu"},
	"riscv64": {elf.EM_RISCV, "riscv64-linux-gnu"},
}

// Architectures lists the architectures with an image, by Go's names.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }
