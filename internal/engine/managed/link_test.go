package managed

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The routes are those of a host with Docker and a pod of Calico.
func TestInterfaceFor(t *testing.T) {
	const eth0, docker0, cali, eth1 = 2, 3, 4, 5
	route := func(index int, cidr, gateway string) netlink.Route {
		_, destination, err := net.ParseCIDR(cidr)
		must.Do(t, err)
		return netlink.Route{LinkIndex: index, Dst: destination, Gw: net.ParseIP(gateway)}
	}
	routes := []netlink.Route{
		route(eth0, "0.0.0.0/0", "10.0.0.1"), route(eth0, "10.0.0.0/24", ""), route(docker0, "172.17.0.0/16", ""),
		route(eth0, "192.168.64.0/18", "10.0.0.2"), route(cali, "192.168.65.5/32", ""),
	}
	multipath := func(cidr string, hops ...*netlink.NexthopInfo) []netlink.Route {
		r := route(0, cidr, "")
		r.MultiPath = hops
		return append([]netlink.Route{r}, routes[1:]...)
	}
	hop := func(index, flags int, gateway string) *netlink.NexthopInfo {
		return &netlink.NexthopInfo{LinkIndex: index, Flags: flags, Gw: net.ParseIP(gateway)}
	}
	viaIPv6 := netlink.Route{LinkIndex: eth0, Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: net.ParseIP("fe80::1")}}
	const host = 6 // cilium_host
	var addrs []netlink.Addr
	for _, address := range []string{"10.10.0.1/32", "192.168.1.20/24", "fd00:10::1/128"} {
		a, err := netlink.ParseAddr(address)
		must.Do(t, err)
		addrs = append(addrs, *a)
	}
	cilium := []netlink.Route{
		route(eth0, "0.0.0.0/0", "192.168.1.1"), route(host, "10.10.0.0/24", "10.10.0.1"), route(host, "10.10.1.0/24", "10.10.0.9"), route(host, "10.10.0.1/32", ""),
	}
	for _, c := range []struct {
		routes    []netlink.Route
		to        string
		index     int
		complaint string
	}{
		{routes, "172.17.0.5", docker0, ""},
		{routes, "192.168.65.5", cali, ""},
		{routes, "192.168.65.6", 0, "behind a gateway"},
		{routes, "10.0.0.9", eth0, ""},
		{routes, "10.88.0.2", 0, "behind a gateway"},
		{[]netlink.Route{{LinkIndex: eth0, Gw: net.ParseIP("10.0.0.1")}}, "10.88.0.2", 0, "behind a gateway"},
		{routes[1:2], "10.88.0.2", 0, "no route"},
		{nil, "10.88.0.2", 0, "no route"},
		{multipath("0.0.0.0/0", hop(eth0, 0, "10.0.0.1"), hop(eth1, 0, "10.0.1.1")), "10.88.0.2", 0, "behind a gateway"},
		{multipath("0.0.0.0/0", hop(eth0, 0, "10.0.0.1"), hop(eth1, 0, "10.0.1.1")), "172.17.0.5", docker0, ""},
		{multipath("10.88.0.0/16", hop(eth0, 0, ""), hop(eth1, 0, "")), "10.88.0.2", eth0, ""},
		{multipath("10.88.0.0/16", hop(eth0, unix.RTNH_F_LINKDOWN, ""), hop(eth1, 0, "")), "10.88.0.2", eth1, ""},
		{multipath("10.88.0.0/16", hop(eth0, unix.RTNH_F_DEAD, ""), hop(eth1, 0, "10.0.1.1")), "10.88.0.2", 0, "behind a gateway"},
		{multipath("10.88.0.0/16", hop(eth0, unix.RTNH_F_DEAD, ""), hop(eth1, unix.RTNH_F_LINKDOWN, "")), "10.88.0.2", 0, "none of the 2 interfaces of its route is up"},
		{[]netlink.Route{viaIPv6}, "10.88.0.2", 0, "behind a gateway"},
		{cilium, "10.10.0.7", host, ""},
		{cilium, "10.10.1.7", 0, "behind a gateway"}, // a pod of another node
		{[]netlink.Route{route(host, "10.10.0.0/24", "10.10.0.2")}, "10.10.0.7", 0, "behind a gateway"},
		{[]netlink.Route{route(host, "10.42.0.0/16", "192.168.1.20")}, "10.42.0.7", host, ""}, // the host's address on another interface
		{multipath("10.10.0.0/24", hop(host, unix.RTNH_F_DEAD, "10.0.0.1"), hop(host, 0, "10.10.0.1")), "10.10.0.7", host, ""},
		{[]netlink.Route{{LinkIndex: host, Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: net.ParseIP("fd00:10::1")}}}, "10.10.0.7", host, ""},
		{append(routes, route(0, "192.168.65.0/26", "")), "192.168.65.6", 0, "its route has no interface"},
	} {
		index, err := interfaceFor(c.routes, addrs, netip.MustParseAddr(c.to))
		if c.complaint == "" && err != nil || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) || index != c.index {
			t.Errorf("the interface for %s is %d, %v; want %d, %q", c.to, index, err, c.index, c.complaint)
		}
	}
	if _, err := HostLink(netip.MustParseAddr("fd00::1")); err == nil || !strings.Contains(err.Error(), "not an IPv4 address") {
		t.Errorf("the link to an IPv6 address: %v", err)
	}
}

// namespace returns a network namespace that ends with the test.
func namespace(t *testing.T) *network.Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	n, err := network.New()
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, n.Close()) })
	return n
}

// pair makes a pair of interfaces that are up, and returns the first one.
func pair(name string, address *net.IPNet) (*netlink.Veth, error) {
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-x"}
	err := errors.Join(netlink.LinkAdd(link), netlink.AddrAdd(link, &netlink.Addr{IPNet: address}), netlink.LinkSetUp(link))
	if err != nil {
		return nil, err
	}
	peer, err := netlink.LinkByName(link.PeerName)
	if err != nil {
		return nil, err
	}
	return link, netlink.LinkSetUp(peer)
}

// The kernel's routes have several next hops, or a gateway that is the host's own address, as with Cilium.
func TestLinkByTheKernelsRoutes(t *testing.T) {
	n := namespace(t)
	if l, err := linkFrom(n, netip.MustParseAddr("10.88.0.2")); err == nil {
		t.Errorf("link from a namespace with only a loopback interface = %+v, want an error", l)
	}
	prefix := func(a, b, c, d byte, bits int) *net.IPNet {
		return &net.IPNet{IP: net.IPv4(a, b, c, d), Mask: net.CIDRMask(bits, 32)}
	}
	must.Do(t, n.Do(func() error {
		one, err1 := pair("one", prefix(10, 1, 0, 1, 24))
		two, err2 := pair("two", prefix(10, 2, 0, 1, 24))
		cilium, err3 := pair("cilium", prefix(10, 10, 0, 1, 32))
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		hostAddr := net.IPv4(10, 10, 0, 1)
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{Dst: prefix(10, 88, 0, 0, 16), MultiPath: []*netlink.NexthopInfo{{LinkIndex: one.Index}, {LinkIndex: two.Index}}}),
			netlink.RouteAdd(&netlink.Route{Dst: prefix(0, 0, 0, 0, 0), MultiPath: []*netlink.NexthopInfo{{Gw: net.IPv4(10, 1, 0, 9)}, {Gw: net.IPv4(10, 2, 0, 9)}}}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: cilium.Index, Dst: prefix(10, 10, 0, 1, 32), Scope: netlink.SCOPE_LINK}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: cilium.Index, Dst: prefix(10, 10, 0, 0, 24), Gw: hostAddr, Src: hostAddr}),
		)
	}))
	link, err := linkFrom(n, netip.MustParseAddr("10.88.0.2"))
	if host := link.Host.String(); err != nil || host != "10.1.0.1" && host != "10.2.0.1" {
		t.Errorf("the link over two interfaces: %+v, %v", link, err)
	}
	if link, err := linkFrom(n, netip.MustParseAddr("10.99.0.2")); err == nil || !strings.Contains(err.Error(), "behind a gateway") {
		t.Errorf("the link over two gateways: %+v, %v", link, err)
	}
	if link, err := linkFrom(n, netip.MustParseAddr("10.10.0.7")); err != nil || link.Host.String() != "10.10.0.1" || link.About["interface"] != "cilium" {
		t.Errorf("the link to a pod of Cilium: %+v, %v", link, err)
	}
	enginetest.Check(t, n.Close())
	if l, err := linkFrom(n, netip.MustParseAddr("10.88.0.2")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("link from a closed namespace = %+v, %v; want an error", l, err)
	}
}
