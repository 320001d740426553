package managed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
)

// The network of the bridges that are made for a run, in network namespaces of their own.
const (
	BridgeName   = "touchstone0"
	BridgeSubnet = "10.88.0.0/16"
	BridgeHost   = "10.88.0.1"
)

// linkFrom describes the way from a namespace to a container's address.
func linkFrom(n *network.Namespace, to netip.Addr) (l engine.Link, err error) {
	err = n.Do(func() (err error) {
		l, err = HostLink(to)
		return err
	})
	l.Namespace = n.Path()
	return l, err
}

// HostLink describes the way from this thread's network namespace to a container's address: the address that the kernel
// gives this end, to which the container can answer, and the interface. A container that is behind a gateway is on
// another machine, or in another network than this one.
func HostLink(to netip.Addr) (engine.Link, error) {
	l, err := findLink(to)
	if err != nil {
		return engine.Link{}, fmt.Errorf("find the way to %s: %w", to, err)
	}
	return l, nil
}

func findLink(to netip.Addr) (l engine.Link, err error) {
	runtime.LockOSThread() // the namespace is the thread's
	defer runtime.UnlockOSThread()
	table, err := os.ReadFile("/proc/thread-self/net/route")
	if err != nil {
		return l, err
	}
	name, err := routeTo(string(table), to)
	if err != nil {
		return l, err
	}
	about, err := network.Describe(name)
	if err != nil {
		return l, err
	}
	// A UDP socket gets its address by this and sends nothing.
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, discard)))
	if err != nil {
		return l, err
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return l, errors.New("its socket has no address")
	}
	return engine.Link{Host: local.AddrPort().Addr().Unmap(), About: about}, nil
}

// discard is the port to which nothing is sent.
const discard = 9

// viaGateway is the flag of a route that leads to another router, as linux/route.h has it.
const viaGateway = 0x2

// routeTo finds the interface to which a table of routes, as /proc/net/route has it, leads packets for an address.
func routeTo(table string, to netip.Addr) (name string, err error) {
	if !to.Is4() {
		return "", errors.New("it is no IPv4 address")
	}
	best, gateway := -1, false
	lines := strings.Split(table, "\n")
	for _, line := range lines[1:] { // the first names the columns
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 8 {
			return "", fmt.Errorf("a route of %d columns: %q", len(fields), line)
		}
		destination, err := routeAddr(fields[1])
		if err != nil {
			return "", err
		}
		mask, err := routeAddr(fields[7])
		if err != nil {
			return "", err
		}
		flags, err := strconv.ParseUint(fields[3], 16, 16)
		if err != nil {
			return "", err
		}
		size, bits := net.IPMask(mask.AsSlice()).Size()
		if bits == 0 {
			return "", fmt.Errorf("the mask %s is none of a network", mask)
		}
		prefix, err := destination.Prefix(size)
		if err != nil {
			return "", err
		}
		if size > best && prefix.Contains(to) {
			best, name, gateway = size, fields[0], flags&viaGateway != 0
		}
	}
	switch {
	case best < 0:
		return "", errors.New("no route leads there")
	case gateway:
		return "", errors.New("it is not in a network of this host, but behind a gateway")
	}
	return name, nil
}

// routeAddr reads an IPv4 address as a table of routes has it: a number in this machine's order of bytes.
func routeAddr(text string) (netip.Addr, error) {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return netip.Addr{}, err
	}
	var bytes [4]byte
	binary.NativeEndian.PutUint32(bytes[:], uint32(n))
	return netip.AddrFrom4(bytes), nil
}

// Link describes the way from the daemon's network to a container's address there. The namespace it names lasts as
// long as the daemon, also if that is started again.
func (d *Daemon) Link(to netip.Addr) (engine.Link, error) { return linkFrom(d.network, to) }
