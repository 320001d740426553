package managed

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/network"
)

// routes is /proc/net/route of a little-endian host with Docker and a pod of Calico.
const routes = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0100000A	0003	0	0	0	00000000	0	0	0
eth0	0000000A	00000000	0001	0	0	0	00FFFFFF	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	0040A8C0	0200000A	0003	0	0	0	00C0FFFF	0	0	0
cali12345678901	0541A8C0	00000000	0005	0	0	0	FFFFFFFF	0	0	0
`

func TestRouteTo(t *testing.T) {
	if table, err := os.ReadFile("/proc/self/net/route"); err != nil || strings.Fields(string(table))[7] != "Mask" {
		t.Errorf("the kernel's table has other columns: %q, %v", table, err)
	}
	for _, c := range []struct{ table, to, name, complaint string }{
		{routes, "172.17.0.5", "docker0", ""},
		{routes, "192.168.65.5", "cali12345678901", ""},
		{routes, "192.168.65.6", "", "behind a gateway"},
		{routes, "10.0.0.9", "eth0", ""},
		{routes, "10.88.0.2", "", "behind a gateway"},
		{routes, "fd00::1", "", "not an IPv4 address"},
		{routes[:strings.Index(routes, "eth0")], "10.88.0.2", "", "no route"},
		{"", "10.88.0.2", "", "no route"},
		{"Iface\neth0 00000000", "10.88.0.2", "", "2 columns"},
		{strings.ReplaceAll(routes, "0000FFFF", "00FF00FF"), "172.17.0.5", "", "mask"},
		{strings.ReplaceAll(routes, "000011AC", "172.17.0.0"), "172.17.0.5", "", "172.17.0.0"},
	} {
		name, err := routeTo(c.table, netip.MustParseAddr(c.to))
		if c.complaint == "" && err != nil || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) || name != c.name {
			t.Errorf("the route to %s is %q, %v; want %q, %q", c.to, name, err, c.name, c.complaint)
		}
	}
}

func FuzzRouteTo(f *testing.F) {
	f.Add(routes)
	f.Fuzz(func(t *testing.T, table string) {
		if name, err := routeTo(table, netip.AddrFrom4([4]byte{10, 88, 0, 2})); err == nil && (name == "" || !strings.Contains(table, name)) {
			t.Errorf("the route is %q", name)
		}
	})
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
