package monitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// queued is the size of the socket's receive buffer in bytes. It holds the records of some ten thousand threads.
const queued = 32 << 20

// largest is an upper bound of the kernel's messages, in bytes.
const largest = 8 << 10

// errOverflow reports that the kernel dropped records.
var errOverflow = errors.New("more processes exited during the trial than the kernel keeps records of")

// conn is a socket for the kernel's taskstats. It does not use Go's network poller, which would wake up for each process that
// exits. The kernel answers a request within the call.
type conn struct {
	fd     int
	family uint16
	seq    uint32
	buf    []byte
	cpus   []byte // the CPUs whose records the socket receives
}

// open opens a socket. The number of the taskstats family is queried if family is 0.
func open(family uint16) (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &conn{fd: fd, family: family, buf: make([]byte, largest)}
	err = os.NewSyscallError("bind", unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	if err == nil && family == 0 {
		err = c.resolve()
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// close cancels the subscription and closes the socket.
func (c *conn) close() error {
	if c.cpus != nil {
		_ = c.send(c.family, unix.TASKSTATS_CMD_GET, unix.TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, c.cpus)
	}
	return os.NewSyscallError("close", unix.Close(c.fd))
}

// resolve queries the number of the family, which the kernel assigns at boot.
func (c *conn) resolve() error {
	answer, err := c.ask(unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, unix.CTRL_ATTR_FAMILY_NAME, []byte(unix.TASKSTATS_GENL_NAME+"\x00"))
	if errors.Is(err, unix.ENOENT) {
		return errors.New("the kernel was built without taskstats")
	}
	if err != nil {
		return fmt.Errorf("query the kernel's taskstats: %w", err)
	}
	c.family, err = parseFamily(answer)
	return err
}

// request encodes a generic netlink message with one attribute.
func request(kind uint16, seq uint32, command uint8, attr uint16, value []byte) []byte {
	length := unix.SizeofNlAttr + len(value)
	size := unix.SizeofNlMsghdr + unix.GENL_HDRLEN + aligned(length)
	b := make([]byte, size)
	n, _ := binary.Encode(b, binary.NativeEndian, struct {
		unix.NlMsghdr
		unix.Genlmsghdr
		unix.NlAttr
	}{ // cannot fail: b is large enough
		unix.NlMsghdr{Len: uint32(size), Type: kind, Flags: unix.NLM_F_REQUEST, Seq: seq}, // the kernel fills in the sender
		unix.Genlmsghdr{Cmd: command, Version: 1},
		unix.NlAttr{Len: uint16(length), Type: attr},
	})
	copy(b[n:], value)
	return b
}

func (c *conn) send(kind uint16, command uint8, attr uint16, value []byte) error {
	c.seq++
	return os.NewSyscallError("send", unix.Sendto(c.fd, request(kind, c.seq, command, attr, value), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// ask sends a request and returns the body of the response.
func (c *conn) ask(kind uint16, command uint8, attr uint16, value []byte) ([]byte, error) {
	if err := c.send(kind, command, attr, value); err != nil {
		return nil, err
	}
	list, err := c.receive()
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Header.Type == kind {
			return m.Data, nil
		}
		if m.Header.Type == unix.NLMSG_ERROR {
			if err := parseError(m.Data); err != nil {
				return nil, err
			}
		}
	}
	return nil, errCutOff
}

// receive reads the next datagram. The error unix.EAGAIN means that the queue is empty. The messages are valid until the next
// call.
func (c *conn) receive() ([]syscall.NetlinkMessage, error) {
	n, _, flags, _, err := unix.Recvmsg(c.fd, c.buf, nil, 0)
	switch {
	case err != nil:
		return nil, os.NewSyscallError("receive", err)
	case flags&unix.MSG_TRUNC != 0:
		return nil, errCutOff
	}
	return messages(c.buf[:n])
}

// self queries the calling thread. If the kernel omits a field for this task, it omits it for all.
func (c *conn) self() error {
	tid := binary.NativeEndian.AppendUint32(nil, uint32(os.Getpid()))
	answer, err := c.ask(c.family, unix.TASKSTATS_CMD_GET, unix.TASKSTATS_CMD_ATTR_PID, tid)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the kernel sends records of processes only to root of the host (CAP_NET_ADMIN): %s", refusal.Rights("run as root"))
	}
	if err != nil {
		return fmt.Errorf("query the kernel's record of this process: %w", err)
	}
	r, err := parseThread(answer)
	if err != nil {
		return err
	}
	if r.cpu == 0 {
		return errors.New("the kernel was built without delay accounting (CONFIG_TASK_DELAY_ACCT), and does not record CPU time")
	}
	return nil
}

// process returns the CPU time of a living process. The error is unix.ESRCH if none has the ID.
func (c *conn) process(pid int) (time.Duration, error) {
	answer, err := c.ask(c.family, unix.TASKSTATS_CMD_GET, unix.TASKSTATS_CMD_ATTR_TGID, binary.NativeEndian.AppendUint32(nil, uint32(pid)))
	if err != nil {
		return 0, err
	}
	return parseProcess(answer)
}

// subscribe makes the kernel send a record of every thread that exits from now on. The socket queues up to queue bytes.
func (c *conn) subscribe(queue int) error {
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queue); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	cpus, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return err
	}
	c.cpus = append([]byte(strings.TrimSpace(string(cpus))), 0)
	// The request asks for no acknowledgement, which would arrive among the records. An error arrives in any case.
	if err := c.send(c.family, unix.TASKSTATS_CMD_GET, unix.TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, c.cpus); err != nil {
		return err
	}
	if _, err := c.drain(); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return errors.New("the kernel sends records of processes only to the host's own PID namespace: run outside of containers")
}

// drain reads all queued records. They are in the order of the threads' exits, or nearly so for threads on different CPUs.
func (c *conn) drain() ([]record, error) {
	var records []record
	for {
		got, err := c.receive()
		if errors.Is(err, unix.EAGAIN) {
			return records, nil
		}
		if errors.Is(err, unix.ENOBUFS) {
			return nil, errOverflow
		}
		if err != nil {
			return nil, err
		}
		for _, m := range got {
			switch m.Header.Type {
			case c.family:
				r, err := parseThread(m.Data)
				if err != nil {
					return nil, err
				}
				records = append(records, r)
			case unix.NLMSG_ERROR:
				if err := parseError(m.Data); err != nil {
					return nil, fmt.Errorf("subscribe to the kernel's records of processes: %w", err)
				}
			}
		}
	}
}
