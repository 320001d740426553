package monitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minVersion is the first version of struct taskstats that names the process of a thread (Linux 5.19).
// Older records do not distinguish the threads of one process from processes.
const minVersion = 12

// lastThread is the flag AGROUP of linux/acct.h, which the last thread of a process has.
const lastThread = 0x20

// versionError reports a kernel whose records do not name the process.
type versionError struct{ Version uint16 }

func (e *versionError) Error() string {
	return fmt.Sprintf("the kernel's records of processes have version %d, but only version %d (Linux 5.19) names the process of a thread",
		e.Version, minVersion)
}

// errCutOff reports a message that is shorter than its header says.
var errCutOff = errors.New("a message from the kernel is truncated")

// messages splits a datagram.
func messages(data []byte) ([]syscall.NetlinkMessage, error) {
	list, err := syscall.ParseNetlinkMessage(data)
	if err != nil || len(list) == 0 {
		return nil, errCutOff
	}
	return list, nil
}

// aligned rounds n up to the alignment of netlink, 4 bytes.
func aligned(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// flags are the bits of an attribute's kind that do not identify it.
const flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER

// find returns the value of the attribute with this path in the body of a generic netlink message, or nil without one. A path has one
// kind for each level of nesting.
func find(body []byte, path ...uint16) ([]byte, error) {
	if len(body) < unix.GENL_HDRLEN {
		return nil, errCutOff
	}
	data := body[unix.GENL_HDRLEN:]
	for _, kind := range path {
		var value []byte
		for value == nil && len(data) > 0 {
			if len(data) < unix.SizeofNlAttr {
				return nil, errCutOff
			}
			size := int(binary.NativeEndian.Uint16(data))
			if size < unix.SizeofNlAttr || size > len(data) {
				return nil, errCutOff
			}
			if binary.NativeEndian.Uint16(data[2:])&^flags == kind {
				value = data[unix.SizeofNlAttr:size]
			}
			data = data[min(aligned(size), len(data)):]
		}
		data = value
	}
	return data, nil
}

// record is the kernel's record of a thread. The record of a process's last thread also covers the process.
type record struct {
	pid, tgid, ppid int
	comm            string
	exe             executed
	last            bool
	cpu             time.Duration
	whole           time.Duration // of all threads so far, in the record of the last one of several
}

// parseThread reads the body of a message about one thread. The message about the last thread of a process also describes
// the process.
func parseThread(body []byte) (record, error) {
	thread, err := stats(body, unix.TASKSTATS_TYPE_AGGR_PID)
	if err != nil {
		return record{}, err
	}
	if thread.Version < minVersion {
		return record{}, &versionError{thread.Version}
	}
	r := record{
		pid: int(thread.Ac_pid), tgid: int(thread.Ac_tgid), ppid: int(thread.Ac_ppid),
		// The type of the elements depends on the architecture.
		comm: unix.ByteSliceToString((*[sizeComm]byte)(unsafe.Pointer(&thread.Ac_comm))[:]),
		exe:  executed{device: thread.Ac_exe_dev, inode: thread.Ac_exe_inode},
		last: thread.Ac_flag&lastThread != 0, cpu: cpu(thread),
	}
	process, err := find(body, unix.TASKSTATS_TYPE_AGGR_TGID)
	if err == nil && r.last && (process != nil || r.pid != r.tgid) {
		r.whole, err = parseProcess(body)
	}
	return r, err
}

const sizeComm = unsafe.Sizeof(unix.Taskstats{}.Ac_comm)

// parseProcess reads the CPU time of all threads of a process, exited ones included, from a message.
func parseProcess(body []byte) (time.Duration, error) {
	process, err := stats(body, unix.TASKSTATS_TYPE_AGGR_TGID)
	if err != nil {
		return 0, err
	}
	return cpu(process), nil
}

// parseFamily reads the ID of a generic netlink family from the body of the response.
func parseFamily(body []byte) (uint16, error) {
	id, err := find(body, unix.CTRL_ATTR_FAMILY_ID)
	if err != nil || len(id) < 2 {
		return 0, errCutOff
	}
	return binary.NativeEndian.Uint16(id), nil
}

// parseError reads the body of an acknowledgement; nil is success.
func parseError(body []byte) error {
	if len(body) < 4 {
		return errCutOff
	}
	code := int32(binary.NativeEndian.Uint32(body))
	if code == 0 {
		return nil
	}
	return unix.Errno(-code)
}

// stats returns the struct in an aggregate attribute. Versions of the kernel only add fields at the end. The version is 0 in the sums
// over an exited process, where the kernel does not set it.
func stats(body []byte, aggregate uint16) (*unix.Taskstats, error) {
	data, err := find(body, aggregate, unix.TASKSTATS_TYPE_STATS)
	if err != nil {
		return nil, err
	}
	s := &unix.Taskstats{}
	n := copy((*[unsafe.Sizeof(*s)]byte)(unsafe.Pointer(s))[:], data)
	switch size := unsafe.Offsetof(s.Ac_exe_inode) + unsafe.Sizeof(s.Ac_exe_inode); {
	case n >= int(size):
		return s, nil
	case n >= 2 && s.Version < minVersion:
		return nil, &versionError{s.Version}
	}
	return nil, errCutOff
}

// cpu is the time on a CPU as the scheduler counts it, which is also the count of cgroups. The kernel may count the fields for
// user and system time in ticks, which are too coarse for a runtime's short processes.
func cpu(s *unix.Taskstats) time.Duration {
	return time.Duration(min(s.Cpu_run_virtual_total, math.MaxInt64))
}
