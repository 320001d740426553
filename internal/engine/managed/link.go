package managed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
func linkFrom(n *network.Namespace, addr netip.Addr) (l engine.Link, err error) {
	err = n.Do(func() (err error) {
		l, err = HostLink(addr)
		return err
	})
	l.Namespace = n.Path()
	return l, err
}

// HostLink describes the link from this thread's network namespace to a container's address: the interface, and the local
// address that the kernel chooses, which the container can reach. A container behind a gateway is on another machine or in
// another network, which is an error.
func HostLink(addr netip.Addr) (engine.Link, error) {
	l, err := findLink(addr)
	if err != nil {
		return engine.Link{}, fmt.Errorf("find the route to %s: %w", addr, err)
	}
	return l, nil
}

func findLink(addr netip.Addr) (l engine.Link, err error) {
	runtime.LockOSThread() // the namespace belongs to the thread
	defer runtime.UnlockOSThread()
	if !addr.Is4() {
		return l, errors.New("it is not an IPv4 address")
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return l, err
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return l, err
	}
	index, err := interfaceFor(routes, addrs, addr)
	if err != nil {
		return l, err
	}
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return l, err
	}
	facts, err := network.Describe(i.Name)
	if err != nil {
		return l, err
	}
	// This binds the UDP socket to an address and sends nothing.
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, discard)))
	if err != nil {
		return l, err
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return l, errors.New("its socket has no address")
	}
	return engine.Link{Host: local.AddrPort().Addr().Unmap(), About: facts}, nil
}

// discard is a port that receives no packet.
const discard = 9

// interfaceFor finds the interface of the most specific route to an IPv4 address. For a route with several next hops it is the
// interface of the first one that is up. addrs are the addresses of this host: a gateway among them, as in Cilium's routes, is none.
func interfaceFor(routes []netlink.Route, addrs []netlink.Addr, addr netip.Addr) (index int, err error) {
	best := -1
	var route netlink.Route
	for _, r := range routes {
		size := 0
		if r.Dst != nil {
			if !r.Dst.Contains(addr.AsSlice()) {
				continue
			}
			size, _ = r.Dst.Mask.Size()
		}
		if size > best {
			best, route = size, r
		}
	}
	if best < 0 {
		return 0, errors.New("there is no route")
	}
	hop := netlink.NexthopInfo{LinkIndex: route.LinkIndex, Gw: route.Gw, Via: route.Via}
	if len(route.MultiPath) > 0 {
		hopIndex := slices.IndexFunc(route.MultiPath, func(n *netlink.NexthopInfo) bool { return n.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 })
		if hopIndex < 0 {
			return 0, fmt.Errorf("none of the %d interfaces of its route is up", len(route.MultiPath))
		}
		hop = *route.MultiPath[hopIndex]
	}
	switch {
	case isGateway(hop, addrs):
		return 0, errors.New("it is behind a gateway, and not in a network of this host")
	case hop.LinkIndex == 0: // such as a blackhole of Calico
		return 0, errors.New("its route has no interface")
	}
	return hop.LinkIndex, nil
}

// isGateway reports whether a next hop is another host.
func isGateway(hop netlink.NexthopInfo, addrs []netlink.Addr) bool {
	gateway := hop.Gw
	if nextHop, ok := hop.Via.(*netlink.Via); ok && nextHop != nil {
		gateway = nextHop.Addr // of another family than the route
	}
	if gateway == nil {
		return hop.Via != nil
	}
	return !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IPNet != nil && a.IP.Equal(gateway) })
}

// Link describes the link from the daemon's network to a container's address there. Its namespace exists until Stop, also if the
// daemon is restarted.
func (d *Daemon) Link(addr netip.Addr) (engine.Link, error) { return linkFrom(d.network, addr) }

// Reach returns nil if a process listens on a Unix socket. If there is no file the error is fs.ErrNotExist, if it is no socket
// ENOTSOCK, and without a listener ECONNREFUSED.
func Reach(ctx context.Context, socket string) error {
	info, err := os.Stat(socket)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return syscall.ENOTSOCK
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// listen listens on a port of the namespace's loopback address.
func listen(ctx context.Context, n *network.Namespace, port int) (l net.Listener, err error) {
	err = n.Do(func() (err error) {
		var listen net.ListenConfig
		l, err = listen.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("serve images in its network: %w", err)
	}
	return l, nil
}
