package locality

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Machine describes a machine. A zero field is unknown.
type Machine struct {
	Kernel string // release
	Memory int64  // bytes
}

// thisMachine describes the machine of this program.
func thisMachine() Machine {
	var m Machine
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	m.Memory = memoryOf("/proc/meminfo")
	return m
}

// memoryOf reads the memory in bytes from a file like /proc/meminfo, as Docker does. The system call sysinfo has another value in LXC. It returns 0 if
// the memory is unknown.
func memoryOf(file string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			kibibytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

// differs returns the difference between two machines; empty if none is known. Machines of one kind often have equal kernels.
func (m Machine) differs(peer Machine) string {
	switch {
	case m.Kernel != "" && peer.Kernel != "" && m.Kernel != peer.Kernel:
		return fmt.Sprintf("it has the kernel %s, and this machine has %s", m.Kernel, peer.Kernel)
	case m.Memory > 0 && peer.Memory > 0 && m.Memory != peer.Memory:
		return fmt.Sprintf("it has %d MiB of memory, and this machine has %d MiB", m.Memory>>20, peer.Memory>>20)
	}
	return ""
}

// PullAdvice is the remedy for a daemon of the user's that cannot pull from this program's registry, which listens on the loopback interface.
func PullAdvice(s engine.Session, daemon Machine) string {
	if difference := daemon.differs(thisMachine()); difference != "" {
		return fmt.Sprintf("the daemon runs on another machine or in a virtual machine (%s): start Touchstone there, or use --managed for a private daemon", difference)
	}
	c := check{session: s}
	return c.inContainer("--network=host", "the daemon needs this program's network namespace, for the registry on the loopback address, and space for images; or use --managed for a private daemon")
}
