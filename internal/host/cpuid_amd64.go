package host

import (
	"encoding/binary"
	"strings"
)

// cpuid executes the instruction CPUID.
func cpuid(leaf uint32) (ebx, ecx, edx uint32)

// hypervisorLeaf is the first leaf that CPUs leave to hypervisors. Without a hypervisor its content has no meaning.
const hypervisorLeaf = 0x40000000

// signature returns the hypervisor's name for itself, such as "KVMKVMKVM" or "TCGTCGTCGTCG".
func signature() string {
	ebx, ecx, edx := cpuid(hypervisorLeaf)
	var b []byte
	for _, part := range []uint32{ebx, ecx, edx} {
		b = binary.LittleEndian.AppendUint32(b, part)
	}
	return strings.TrimRight(string(b), "\x00")
}
