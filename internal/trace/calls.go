package trace

import (
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// callTable has a line for each system call: its name, and its number on each architecture of callArchitectures, or "-". It is made of
// golang.org/x/sys, whose constants have no names in a program.
//
//go:embed calls.txt
var callTable string

// callArchitectures are the columns of callTable.
var callArchitectures = []string{"amd64", "arm64", "riscv64"}

// callNames are the names of the system calls of this architecture, by number.
var callNames = sync.OnceValue(func() map[uint32]string {
	column := slices.Index(callArchitectures, runtime.GOARCH)
	names := map[uint32]string{}
	for line := range strings.Lines(callTable) {
		fields := strings.Fields(line)
		if len(fields) != 1+len(callArchitectures) {
			panic(fmt.Sprintf("a line of calls.txt is not a name with the numbers of %v: %q", callArchitectures, line))
		}
		if column < 0 || fields[1+column] == "-" {
			continue
		}
		number, err := strconv.ParseUint(fields[1+column], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("a number of calls.txt: %v", err))
		}
		names[uint32(number)] = fields[0]
	}
	return names
})
