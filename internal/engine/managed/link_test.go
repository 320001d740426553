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

	"github.com/touchstone-bench/touchstone/internal/engine/network"
)

// The routes are those of a host with Docker and a pod of Calico.
func TestInterfaceFor(t *testing.T) {
	const eth0, docker0, cali, eth1 = 2, 3, 4, 5
	route := func(index int, to, via string) netlink.Route {
		_, destination, err := net.ParseCIDR(to)
		if err != nil {
			t.Fatal(err)
		}
		return netlink.Route{LinkIndex: index, Dst: destination, Gw: net.ParseIP(via)}
	}
	routes := []netlink.Route{
		route(eth0, "0.0.0.0/0", "10.0.0.1"), route(eth0, "10.0.0.0/24", ""), route(docker0, "172.17.0.0/16", ""),
		route(eth0, "192.168.64.0/18", "10.0.0.2"), route(cali, "192.168.65.5/32", ""),
	}
	several := func(to string, hops ...*netlink.NexthopInfo) []netlink.Route {
		r := route(0, to, "")
		r.MultiPath = hops
		return append([]netlink.Route{r}, routes[1:]...)
	}
	hop := func(index, flags int, via string) *netlink.NexthopInfo {
		return &netlink.NexthopInfo{LinkIndex: index, Flags: flags, Gw: net.ParseIP(via)}
	}
	viaIPv6 := netlink.Route{LinkIndex: eth0, Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: net.ParseIP("fe80::1")}}
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
		{several("0.0.0.0/0", hop(eth0, 0, "10.0.0.1"), hop(eth1, 0, "10.0.1.1")), "10.88.0.2", 0, "behind a gateway"},
		{several("0.0.0.0/0", hop(eth0, 0, "10.0.0.1"), hop(eth1, 0, "10.0.1.1")), "172.17.0.5", docker0, ""},
		{several("10.88.0.0/16", hop(eth0, 0, ""), hop(eth1, 0, "")), "10.88.0.2", eth0, ""},
		{several("10.88.0.0/16", hop(eth0, unix.RTNH_F_LINKDOWN, ""), hop(eth1, 0, "")), "10.88.0.2", eth1, ""},
		{several("10.88.0.0/16", hop(eth0, unix.RTNH_F_DEAD, ""), hop(eth1, 0, "10.0.1.1")), "10.88.0.2", 0, "behind a gateway"},
		{several("10.88.0.0/16", hop(eth0, unix.RTNH_F_DEAD, ""), hop(eth1, unix.RTNH_F_LINKDOWN, "")), "10.88.0.2", 0, "none of the 2 interfaces of its route is up"},
		{[]netlink.Route{viaIPv6}, "10.88.0.2", 0, "behind a gateway"},
		{append(routes, route(0, "192.168.65.0/26", "")), "192.168.65.6", 0, "its route has no interface"},
	} {
		index, err := interfaceFor(c.routes, netip.MustParseAddr(c.to))
		if c.complaint == "" && err != nil || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) || index != c.index {
			t.Errorf("the interface for %s is %d, %v; want %d, %q", c.to, index, err, c.index, c.complaint)
		}
	}
	if _, err := HostLink(netip.MustParseAddr("fd00::1")); err == nil || !strings.Contains(err.Error(), "not an IPv4 address") {
		t.Errorf("the link to an IPv6 address: %v", err)
	}
}

// The kernel's routes with several next hops, in a network namespace.
func TestLinkWithSeveralNextHops(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	n, err := network.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	err = n.Do(func() error {
		var hops []*netlink.NexthopInfo
		for _, host := range []string{"10.1.0.1", "10.2.0.1"} {
			link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "to-" + host}, PeerName: "at-" + host}
			own, err := netlink.ParseAddr(host + "/24")
			if err != nil {
				return err
			}
			err = errors.Join(netlink.LinkAdd(link), netlink.AddrAdd(link, own), netlink.LinkSetUp(link))
			if err != nil {
				return err
			}
			peer, err := netlink.LinkByName(link.PeerName)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(peer); err != nil {
				return err
			}
			hops = append(hops, &netlink.NexthopInfo{LinkIndex: link.Index})
		}
		_, containers, err := net.ParseCIDR("10.88.0.0/16")
		if err != nil {
			return err
		}
		_, all, err := net.ParseCIDR("0.0.0.0/0")
		if err != nil {
			return err
		}
		gateways := []*netlink.NexthopInfo{{Gw: net.IPv4(10, 1, 0, 9)}, {Gw: net.IPv4(10, 2, 0, 9)}}
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{Dst: containers, MultiPath: hops}), netlink.RouteAdd(&netlink.Route{Dst: all, MultiPath: gateways}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	link, err := linkFrom(n, netip.MustParseAddr("10.88.0.2"))
	if host := link.Host.String(); err != nil || host != "10.1.0.1" && host != "10.2.0.1" {
		t.Errorf("the link over two interfaces: %+v, %v", link, err)
	}
	if link, err := linkFrom(n, netip.MustParseAddr("10.99.0.2")); err == nil || !strings.Contains(err.Error(), "behind a gateway") {
		t.Errorf("the link over two gateways: %+v, %v", link, err)
	}
}

func TestNoLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	n, err := network.New()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := linkFrom(n, netip.AddrFrom4([4]byte{10, 88, 0, 2})); err == nil {
		t.Errorf("link from a namespace with only a loopback interface = %+v, want an error", l)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if l, err := linkFrom(n, netip.AddrFrom4([4]byte{10, 88, 0, 2})); !errors.Is(err, os.ErrClosed) {
		t.Errorf("link from a closed namespace = %+v, %v; want an error", l, err)
	}
}
