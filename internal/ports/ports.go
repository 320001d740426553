// Package ports gives tests the ports of programs that listen later. The kernel may give a port that a test takes and closes
// to a program beside the test. Only tests import the package.
package ports

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// loopback is the address of all ports.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Reserve reserves a port of the loopback address until the end of the test. The port refuses connections until the test calls listen, which it
// may do once.
func Reserve(t testing.TB) (address netip.AddrPort, listen func() net.Listener) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.Do(t, err)
	socket := os.NewFile(uintptr(fd), "reserved port")
	t.Cleanup(func() { _ = socket.Close() })
	must.Do(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}))
	bound, err := unix.Getsockname(fd)
	must.Do(t, err)
	port := bound.(*unix.SockaddrInet4).Port
	return netip.AddrPortFrom(loopback, uint16(port)), func() net.Listener {
		t.Helper()
		must.Do(t, unix.Listen(fd, unix.SOMAXCONN))
		listener, err := net.FileListener(socket)
		must.Do(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
}

// Free returns the first of count ports of the loopback address that no program uses, for a program that takes a port by number. The kernel gives
// ports below 32768 only to programs that ask for them, so no connection of another program takes one meanwhile.
func Free(t testing.TB, count int) netip.AddrPort {
	t.Helper()
	const first, last, tries = 10_000, 32_000, 100
	for range tries {
		port := first + count*rand.IntN((last-first)/count)
		if unused(t, port, count) {
			return netip.AddrPortFrom(loopback, uint16(port))
		}
	}
	t.Fatalf("%d tries found no %d ports in a row that are unused", tries, count)
	return netip.AddrPort{}
}

func unused(t testing.TB, port, count int) bool {
	t.Helper()
	var config net.ListenConfig
	for p := range count {
		l, err := config.Listen(t.Context(), "tcp4", netip.AddrPortFrom(loopback, uint16(port+p)).String())
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
