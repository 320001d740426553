package trace

import (
	"encoding/binary"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
)

// directories are the directories with a count of opened files, and their names in result.TraceCounts.Opens. A directory within another one comes first.
var directories = []struct {
	name  string
	paths []string
}{
	{"/proc", []string{"/proc"}},
	{"/sys/fs/cgroup", []string{"/sys/fs/cgroup"}},
	{"/sys", []string{"/sys"}},
	{"/dev", []string{"/dev"}},
	{"/etc", []string{"/etc"}},
	{"/usr", []string{"/usr", "/lib", "/lib64", "/bin", "/sbin"}},
	{result.OpensState, []string{"/run/touchstone", "/var/lib/touchstone"}},
	{"/run", []string{"/run", "/var/run"}},
	{"/var/lib", []string{"/var/lib"}},
}

// The numbers of trace.c for paths outside of all directories of the list.
var (
	otherDirectory    = uint64(len(directories))
	relativeDirectory = otherDirectory + 1
)

// prefixes is the variable of trace.c. A path ends after its directory, or goes on with a slash.
func prefixes() (list [32]bpfPrefix) {
	next := list[:0]
	add := func(directory uint64, text string) {
		var begin, mask [24]byte
		copy(begin[:], text)
		copy(mask[:], slices.Repeat([]byte{0xff}, len(text)))
		p := bpfPrefix{Directory: directory}
		for i := range p.Text {
			p.Text[i], p.Mask[i] = binary.NativeEndian.Uint64(begin[8*i:]), binary.NativeEndian.Uint64(mask[8*i:])
		}
		next = append(next, p)
	}
	for i, d := range directories {
		for _, path := range d.paths {
			add(uint64(i), path+"/")
			add(uint64(i), path+"\x00")
		}
	}
	add(otherDirectory, "/")
	add(relativeDirectory, "")
	return list
}

// The numbers of trace.c for system calls whose arguments it looks at.
const (
	watchOpen   = 1 // the path is the first argument
	watchOpenAt = 2 // the path is the second argument
	watchOutput = 3 // the first argument is a descriptor
)

// watched is the variable of trace.c.
func watched() (numbers [512]uint8) {
	kinds := map[string]uint8{
		"open": watchOpen, "creat": watchOpen, "openat": watchOpenAt, "openat2": watchOpenAt, "write": watchOutput, "writev": watchOutput,
		"pwrite64": watchOutput, "pwritev": watchOutput, "pwritev2": watchOutput, "sendto": watchOutput, "sendmsg": watchOutput, "sendmmsg": watchOutput,
	}
	for _, number := range syscalls.Numbers() {
		if number < indexCompat {
			numbers[number] = kinds[syscalls.Name(number)]
		}
	}
	return numbers
}

// directoryName is the name of a directory in result.TraceCounts.Opens.
func directoryName(directory uint64) string {
	switch directory {
	case otherDirectory:
		return result.OpensOther
	case relativeDirectory:
		return result.OpensRelative
	}
	return directories[directory].name
}
