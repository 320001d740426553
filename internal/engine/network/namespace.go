package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace without a name. It exists as long as this value, or a process or socket in it. Nothing
// must be removed from the host.
type Namespace struct {
	file *os.File
}

// New makes a namespace with the loopback interface and without IPv6. The kernel's own IPv6 traffic (neighbour discovery,
// duplicate addresses) would disturb the measurement.
func New() (*Namespace, error) {
	n := &Namespace{}
	err := onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		if err := silenceIPv6(); err != nil {
			return err
		}
		if err := up("lo"); err != nil {
			return err
		}
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return n, nil
}

// Path is the namespace's path for other processes. It is valid while the namespace is open.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Do calls f on a thread in the namespace. Sockets that f makes belong to the namespace. The error is os.ErrClosed if the
// namespace has been closed.
func (n *Namespace) Do(f func() error) error {
	if n.file.Fd() == ^uintptr(0) {
		return os.ErrClosed
	}
	return onThread(func() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }, f)
}

// Close closes the namespace. It is idempotent.
func (n *Namespace) Close() error {
	if err := n.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close a network namespace: %w", err)
	}
	return nil
}

// onThread locks a thread, moves it to a network namespace by enter, calls f, and moves the thread back.
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
		// The thread stays locked, so that no other goroutine runs in the wrong network.
		return errors.Join(err, fmt.Errorf("return to the host's network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// silenceIPv6 disables IPv6 in this thread's namespace. Without IPv6 in the kernel it does nothing.
func silenceIPv6() error {
	for _, scope := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// up brings up an interface of this thread's namespace.
func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("bring up the interface %s: %w", name, err)
	}
	return nil
}
