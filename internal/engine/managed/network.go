package managed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// network is a network namespace that begins with the loopback interface and nothing else. It
// lives as long as this value, a process or a socket in it does: there is nothing to remove.
type network struct {
	ns *os.File
}

func newNetwork() (*network, error) {
	n := &network{}
	err := onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() error {
		if err := loopbackUp(); err != nil {
			return err
		}
		var err error
		n.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return n, nil
}

// do calls f on a thread in the namespace; the sockets that f itself makes belong to it.
func (n *network) do(f func() error) error {
	return onThread(func() error { return unix.Setns(int(n.ns.Fd()), unix.CLONE_NEWNET) }, f)
}

// listen listens on a port of the namespace's loopback address.
func (n *network) listen(ctx context.Context, port int) (l net.Listener, err error) {
	err = n.do(func() (err error) {
		var listen net.ListenConfig
		l, err = listen.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	return l, err
}

// dial connects from within the namespace. The host of the address must be an IP address: names are
// looked up by other threads.
func (n *network) dial(ctx context.Context, kind, address string) (conn net.Conn, err error) {
	err = n.do(func() (err error) {
		var dialer net.Dialer
		conn, err = dialer.DialContext(ctx, kind, address)
		return err
	})
	return conn, err
}

func (n *network) close() error { return n.ns.Close() }

// onThread calls f on a thread of its own in the network namespace that enter leads to, and leads
// the thread back.
func onThread(enter, f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }() // it is only read from
	if err := enter(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, and nobody else comes into the wrong network by it.
		return errors.Join(err, fmt.Errorf("return to the host's network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// loopbackUp brings up the loopback interface of this thread's namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
