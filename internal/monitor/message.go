package monitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
type versionError struct{ Version int }

func (e *versionError) Error() string {
	return fmt.Sprintf("the kernel's records of processes have version %d, but only version %d (Linux 5.19) names the process of a thread",
		e.Version, minVersion)
}

// errCutOff reports a message that is shorter than its header says.
var errCutOff = errors.New("a message from the kernel is truncated")

// message is one netlink message.
type message struct {
	kind uint16
	body []byte
}

// messages splits a datagram.
func messages(data []byte) ([]message, error) {
	var all []message
	for len(data) > 0 {
		if len(data) < unix.SizeofNlMsghdr {
			return nil, errCutOff
		}
		size := binary.NativeEndian.Uint32(data)
		if size < unix.SizeofNlMsghdr || uint64(size) > uint64(len(data)) {
			return nil, errCutOff
		}
		all = append(all, message{binary.NativeEndian.Uint16(data[4:]), data[unix.SizeofNlMsghdr:size]})
		data = data[min(aligned(int(size)), len(data)):]
	}
	return all, nil
}

// aligned rounds n up to the alignment of netlink, 4 bytes.
func aligned(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// flags are the bits of an attribute's kind that do not identify it.
const flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER

// attribute is one netlink attribute.
type attribute struct {
	kind  uint16
	value []byte
}

func attributes(data []byte) ([]attribute, error) {
	var all []attribute
	for len(data) > 0 {
		if len(data) < unix.SizeofNlAttr {
			return nil, errCutOff
		}
		size := int(binary.NativeEndian.Uint16(data))
		if size < unix.SizeofNlAttr || size > len(data) {
			return nil, errCutOff
		}
		kind := binary.NativeEndian.Uint16(data[2:]) &^ flags
		all = append(all, attribute{kind, data[unix.SizeofNlAttr:size]})
		data = data[min(aligned(size), len(data)):]
	}
	return all, nil
}

// find returns the value of the first attribute of a kind.
func find(all []attribute, kind uint16) ([]byte, bool) {
	for _, a := range all {
		if a.kind == kind {
			return a.value, true
		}
	}
	return nil, false
}

// record is the kernel's record of a thread. The record of a process's last thread also covers the process.
type record struct {
	pid, tgid, ppid int
	comm            string
	last            bool
	cpu             time.Duration
	whole           time.Duration // of all threads so far, in the record of the last one of several
}

// parseThread reads the body of a message about one thread. The message about the last thread of a process also describes
// the process.
func parseThread(body []byte) (record, error) {
	about, err := contents(body)
	if err != nil {
		return record{}, err
	}
	thread, err := stats(about, unix.TASKSTATS_TYPE_AGGR_PID)
	if err != nil {
		return record{}, err
	}
	if v := thread.version(); v < minVersion {
		return record{}, &versionError{v}
	}
	r := record{
		pid: thread.id(offPID), tgid: thread.id(offTGID), ppid: thread.id(offPPID),
		comm: thread.comm(), last: thread[offFlag]&lastThread != 0, cpu: thread.cpu(),
	}
	if _, several := find(about, unix.TASKSTATS_TYPE_AGGR_TGID); r.last && (several || r.pid != r.tgid) {
		r.whole, err = parseProcess(body)
	}
	return r, err
}

// parseProcess reads the CPU time of all threads of a process, exited ones included, from a message.
func parseProcess(body []byte) (time.Duration, error) {
	about, err := contents(body)
	if err != nil {
		return 0, err
	}
	process, err := stats(about, unix.TASKSTATS_TYPE_AGGR_TGID)
	if err != nil {
		return 0, err
	}
	return process.cpu(), nil
}

// parseFamily reads the ID of a generic netlink family from the body of the response.
func parseFamily(body []byte) (uint16, error) {
	about, err := contents(body)
	if err != nil {
		return 0, err
	}
	id, ok := find(about, unix.CTRL_ATTR_FAMILY_ID)
	if !ok || len(id) < 2 {
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

// contents returns the attributes of a generic netlink message.
func contents(body []byte) ([]attribute, error) {
	if len(body) < unix.GENL_HDRLEN {
		return nil, errCutOff
	}
	return attributes(body[unix.GENL_HDRLEN:])
}

// taskstats is a struct taskstats as the kernel sent it. Versions only add fields at the end.
type taskstats []byte

// Offsets and sizes of the fields in use.
const (
	offFlag = unsafe.Offsetof(unix.Taskstats{}.Ac_flag)
	offCPU  = unsafe.Offsetof(unix.Taskstats{}.Cpu_run_virtual_total)
	offComm = unsafe.Offsetof(unix.Taskstats{}.Ac_comm)
	offPID  = unsafe.Offsetof(unix.Taskstats{}.Ac_pid)
	offPPID = unsafe.Offsetof(unix.Taskstats{}.Ac_ppid)
	offTGID = unsafe.Offsetof(unix.Taskstats{}.Ac_tgid)

	sizeComm = unsafe.Sizeof(unix.Taskstats{}.Ac_comm)
	sizeUsed = offTGID + unsafe.Sizeof(unix.Taskstats{}.Ac_tgid)
)

// stats returns the struct in an aggregate attribute.
func stats(all []attribute, aggregate uint16) (taskstats, error) {
	value, ok := find(all, aggregate)
	if !ok {
		return nil, errCutOff
	}
	parts, err := attributes(value)
	if err != nil {
		return nil, err
	}
	data, ok := find(parts, unix.TASKSTATS_TYPE_STATS)
	if !ok {
		return nil, errCutOff
	}
	if s := taskstats(data); len(s) >= int(sizeUsed) {
		return s, nil
	}
	if len(data) >= 2 && taskstats(data).version() < minVersion {
		return nil, &versionError{taskstats(data).version()}
	}
	return nil, errCutOff
}

// version is 0 in the sums over an exited process, where the kernel does not set it.
func (s taskstats) version() int { return int(binary.NativeEndian.Uint16(s)) }

func (s taskstats) id(at uintptr) int { return int(binary.NativeEndian.Uint32(s[at:])) }

func (s taskstats) comm() string {
	name, _, _ := bytes.Cut(s[offComm:offComm+sizeComm], []byte{0})
	return string(name)
}

// cpu is the time on a CPU as the scheduler counts it, which is also the count of cgroups. The kernel may count the fields for
// user and system time in ticks, which are too coarse for a runtime's short processes.
func (s taskstats) cpu() time.Duration {
	return time.Duration(min(binary.NativeEndian.Uint64(s[offCPU:]), math.MaxInt64))
}
