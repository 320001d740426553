package managed

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/touchstone-bench/touchstone/internal/engine/network"
)

// The routes are those of a host with Docker and a pod of Calico.
func TestInterfaceFor(t *testing.T) {
	const eth0, docker0, cali = 2, 3, 4
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
