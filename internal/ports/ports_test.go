package ports

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A reserved port refuses connections and other listeners, and serves once it listens.
func TestReserve(t *testing.T) {
	address, listen := Reserve(t)
	if conn, err := net.Dial("tcp4", address.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection before the test listens: %v, %v", conn, err)
	}
	if l, err := net.Listen("tcp4", address.String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another program listens: %v, %v", l, err)
	}
	listen()
	conn, err := net.Dial("tcp4", address.String())
	must.Do(t, err, conn.Close())
}

// A port counts as unused only if the ones after it are.
func TestFree(t *testing.T) {
	const count = 3
	address := Free(t, count)
	if address.Port() >= 32768 {
		t.Errorf("the kernel gives port %d to connections", address.Port())
	}
	port, _ := Reserve(t)
	if unused(t, int(port.Port())-1, count) {
		t.Errorf("port %d is in use", port.Port())
	}
}
