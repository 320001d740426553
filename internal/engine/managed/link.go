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

// The network of a run's bridges, each in a network namespace of its own.
const (
	BridgeName   = "touchstone0"
	BridgeSubnet = "10.88.0.0/16"
	BridgeHost   = "10.88.0.1"
)

// linkFrom describes the link from a namespace to a container's address.
func linkFrom(n *network.Namespace, to netip.Addr) (l engine.Link, err error) {
	err = n.Do(func() (err error) {
		l, err = HostLink(to)
		return err
	})
	l.Namespace = n.Path()
	return l, err
}

// HostLink describes the link from this thread's network namespace to a container's address: the interface, and the local
// address that the kernel chooses, which the container can reach. A container behind a gateway is on another machine or in
// another network, which is an error.
func HostLink(to netip.Addr) (engine.Link, error) {
	l, err := findLink(to)
	if err != nil {
		return engine.Link{}, fmt.Errorf("find the route to %s: %w", to, err)
	}
	return l, nil
}

func findLink(to netip.Addr) (l engine.Link, err error) {
	runtime.LockOSThread() // the namespace belongs to the thread
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
	// This binds the UDP socket to an address and sends nothing.
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

// discard is a port that receives no packet.
const discard = 9

// viaGateway is the flag RTF_GATEWAY of linux/route.h, for a route through another router.
const viaGateway = 0x2

// routeTo finds the interface for an address in a table of routes in the format of /proc/net/route.
func routeTo(table string, to netip.Addr) (name string, err error) {
	if !to.Is4() {
		return "", errors.New("it is not an IPv4 address")
	}
	best, gateway := -1, false
	lines := strings.Split(table, "\n")
	for _, line := range lines[1:] { // the first line has the names of the columns
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 8 {
			return "", fmt.Errorf("a route has %d columns: %q", len(fields), line)
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
			return "", fmt.Errorf("the mask %s is not a prefix", mask)
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
		return "", errors.New("there is no route")
	case gateway:
		return "", errors.New("it is behind a gateway, and not in a network of this host")
	}
	return name, nil
}

// routeAddr parses an IPv4 address of a table of routes, a number in this machine's byte order.
func routeAddr(text string) (netip.Addr, error) {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return netip.Addr{}, err
	}
	var bytes [4]byte
	binary.NativeEndian.PutUint32(bytes[:], uint32(n))
	return netip.AddrFrom4(bytes), nil
}

// Link describes the link from the daemon's network to a container's address there. Its namespace exists until Stop, also if the
// daemon is restarted.
func (d *Daemon) Link(to netip.Addr) (engine.Link, error) { return linkFrom(d.network, to) }
