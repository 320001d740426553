// Package syscalls knows the names of the kernel's system calls by number.
package syscalls

import (
	_ "embed"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// table has a line for each system call: its name, and its number on each of architectures, or "-". It is made of golang.org/x/sys, whose constants
// have no names in a program.
//
//go:embed table.txt
var table string

// architectures are the columns of the table, by Go's name, with the kernel's identifier AUDIT_ARCH_*.
var architectures = []struct {
	name  string
	audit uint32
}{{"amd64", unix.AUDIT_ARCH_X86_64}, {"arm64", unix.AUDIT_ARCH_AARCH64}, {"riscv64", unix.AUDIT_ARCH_RISCV64}}

// names are the names of this architecture.
var names = sync.OnceValue(func() map[uint32]string { return namesOf(runtime.GOARCH) })

func namesOf(arch string) map[uint32]string {
	column := 0
	for i, a := range architectures {
		if a.name == arch {
			column = 1 + i
		}
	}
	calls := map[uint32]string{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) != 1+len(architectures) {
			panic(fmt.Sprintf("a line of the table of system calls is not a name with %d numbers: %q", len(architectures), line))
		}
		if column == 0 || fields[column] == "-" {
			continue
		}
		number, err := strconv.ParseUint(fields[column], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("the table of system calls: %v", err))
		}
		calls[uint32(number)] = fields[0]
	}
	return calls
}

// Name returns the name of a system call of this architecture; "number N" if it has none.
func Name(number uint32) string {
	if name, ok := names()[number]; ok {
		return name
	}
	return fmt.Sprintf("number %d", number)
}

// IsName reports whether a system call of some architecture has this name.
func IsName(name string) bool {
	return slices.ContainsFunc(slices.Collect(strings.Lines(table)), func(line string) bool { return strings.Fields(line)[0] == name })
}

// Numbers lists the known system calls of this architecture, in order.
func Numbers() []uint32 { return slices.Sorted(maps.Keys(names())) }

// Audit is the identifier of this architecture in seccomp filters; 0 if it has no column in the table.
func Audit() uint32 {
	for _, a := range architectures {
		if a.name == runtime.GOARCH {
			return a.audit
		}
	}
	return 0
}
