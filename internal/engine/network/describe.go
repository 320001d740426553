package network

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads are the tasks that a network interface may do for the kernel, by the short names of ethtool(8), with the
// commands of linux/ethtool.h that read them. They decide whether the kernel does the work on packets one by one or for
// many at once.
var offloads = []struct {
	name string
	get  uint32
}{
	{"rx", unix.ETHTOOL_GRXCSUM},
	{"tx", unix.ETHTOOL_GTXCSUM},
	{"sg", unix.ETHTOOL_GSG},
	{"tso", unix.ETHTOOL_GTSO},
	{"gso", unix.ETHTOOL_GGSO},
	{"gro", unix.ETHTOOL_GGRO},
}

// Describe returns the properties of an interface of this thread's namespace for the record: its name, kind, MTU in bytes
// and the enabled offloads. An offload that the driver does not report counts as disabled.
func Describe(name string) (map[string]string, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("look at the network interface %s: %w", name, err)
	}
	facts := map[string]string{"interface": i.Name, "mtu": strconv.Itoa(i.MTU), "offloads": "none"}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("look at the network interface %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if info, err := unix.IoctlGetEthtoolDrvinfo(fd, name); err == nil {
		facts["kind"] = unix.ByteSliceToString(info.Driver[:])
	}
	var names []string
	for _, o := range offloads {
		if value, err := ethtool(fd, name, o.get); err == nil && value != 0 {
			names = append(names, o.name)
		}
	}
	if len(names) > 0 {
		facts["offloads"] = strings.Join(names, " ")
	}
	return facts, nil
}

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct{ command, data uint32 }

// ethtool reads one value from an interface's driver.
func ethtool(socket int, name string, command uint32) (uint32, error) {
	value := ethtoolValue{command: command}
	var request struct { // struct ifreq; value is one member of its union
		name  [unix.IFNAMSIZ]byte
		value *ethtoolValue
		_     [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.value = &value
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, errno
	}
	return value.data, nil
}
