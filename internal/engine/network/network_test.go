package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
}

// listen serves one connection in the namespace of a path.
func listen(t *testing.T, path string, addr netip.Addr) netip.AddrPort {
	t.Helper()
	var listener net.Listener
	in(t, path, func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(addr, 0).String())
		return err
	})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func wantReached(t *testing.T, path string, addr netip.AddrPort) {
	t.Helper()
	in(t, path, func() error {
		conn, err := net.Dial("tcp4", addr.String())
		if err != nil {
			return err
		}
		text, err := io.ReadAll(conn)
		if string(text) != "hello" {
			t.Errorf("read %q from %s, want hello", text, addr)
		}
		return errors.Join(err, conn.Close())
	})
}

// in calls f in the namespace of a path.
func in(t *testing.T, path string, f func() error) {
	t.Helper()
	file, err := os.Open(path)
	must.Do(t, err)
	n := &Namespace{file: file}
	must.Do(t, errors.Join(n.Do(f), n.Close()))
}

// unchanged checks at the end of the test that this program holds no further namespace and the host has no further
// interface.
func unchanged(t *testing.T) {
	t.Helper()
	state := func() string {
		interfaces, err := net.Interfaces()
		must.Do(t, err)
		var names []string
		for _, i := range interfaces {
			names = append(names, i.Name)
		}
		fds, err := os.ReadDir("/proc/self/fd")
		must.Do(t, err)
		namespaces := 0
		for _, fd := range fds {
			if link, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(link, "net:") {
				namespaces++
			}
		}
		return fmt.Sprint(names, namespaces)
	}
	baseline := state()
	t.Cleanup(func() {
		if end := state(); end != baseline {
			t.Errorf("interfaces and open namespaces are %s, and were %s", end, baseline)
		}
	})
}

func closeAll(t *testing.T, closers ...io.Closer) {
	t.Helper()
	for range 2 { // it is idempotent
		for _, c := range closers {
			must.Do(t, c.Close())
		}
	}
}

func TestBridge(t *testing.T) {
	needRoot(t)
	unchanged(t)
	b, err := NewBridge()
	must.Do(t, err)
	first, err := b.Connect()
	must.Do(t, err)
	second, err := b.Connect()
	must.Do(t, err)
	link := b.Link()
	wantReached(t, second.Path(), listen(t, first.Path(), first.Address()))
	wantReached(t, link.Namespace, listen(t, first.Path(), first.Address()))
	wantReached(t, second.Path(), listen(t, link.Namespace, link.Host))
	wantAbout(t, link)
	if link.About["container's kind"] != "veth" || link.About["container's mtu"] != "1500" || link.About["container's offloads"] == "" {
		t.Errorf("the description of the network is %v, and lacks a container's interface", link.About)
	}

	old := first.Address()
	closeAll(t, first)
	lastPort, err := b.Connect()
	must.Do(t, err)
	if lastPort.Address() == old || lastPort.Address() == second.Address() {
		t.Errorf("the third container has %s, after %s and %s", lastPort.Address(), old, second.Address())
	}
	wantReached(t, lastPort.Path(), listen(t, second.Path(), second.Address()))
	// Close works in any order.
	closeAll(t, second, b)
	closeAll(t, lastPort)
}

// A server with a reused address is reachable at once, although its peers have the old one in their neighbour caches.
func TestReusedAddress(t *testing.T) {
	needRoot(t)
	b, err := NewBridge()
	must.Do(t, err)
	defer closeAll(t, b)
	client, err := b.Connect()
	must.Do(t, err)
	defer closeAll(t, client)
	for range 2 {
		b.last = client.Address()
		server, err := b.Connect()
		must.Do(t, err)
		if server.Address() != client.Address().Next() {
			t.Errorf("the address is %s, want the one after %s", server.Address(), client.Address())
		}
		wantReached(t, client.Path(), listen(t, server.Path(), server.Address()))
		closeAll(t, server)
	}
}

func TestReserve(t *testing.T) {
	b := &Bridge{last: netip.MustParseAddr("198.18.255.253"), used: map[netip.Addr]bool{netip.MustParseAddr("198.18.0.2"): true}}
	for _, want := range []string{"198.18.255.254", "198.18.0.3", "198.18.0.4"} { // no broadcast, not the host's, none that is used
		if got, err := b.reserve(); err != nil || got.String() != want {
			t.Errorf("the next address is %s, %v; want %s", got, err, want)
		}
	}
	for a := hostAddr.Next(); subnet.Contains(a); a = a.Next() {
		b.used[a] = true
	}
	if got, err := b.reserve(); err == nil {
		t.Errorf("reserve() = %s although all addresses are in use", got)
	}
}

func TestPair(t *testing.T) {
	needRoot(t)
	for name, make := range map[string]func() (*Pair, error){"veth": NewPair, "loopback": NewLoopback} {
		t.Run(name, func(t *testing.T) {
			unchanged(t)
			p, err := make()
			must.Do(t, err)
			defer closeAll(t, p)
			link := p.Link()
			first, second := p.Connect(), p.Connect()
			wantReached(t, link.Namespace, listen(t, first.Path(), first.Address()))
			wantReached(t, first.Path(), listen(t, link.Namespace, link.Host))
			wantReached(t, second.Path(), listen(t, first.Path(), first.Address()))
			wantReached(t, first.Path(), listen(t, second.Path(), second.Address()))
			wantAbout(t, link)
			if isShared := first.Path() == second.Path(); isShared != (name == "loopback") || second.Address() != link.Host {
				t.Errorf("two processes are at %s, %s and %s, %s", first.Path(), first.Address(), second.Path(), second.Address())
			}
			for range 2 { // it is idempotent
				first.Close()
			}
			if lastEnd := p.Connect(); lastEnd.Path() != first.Path() || lastEnd.Address() != first.Address() {
				t.Errorf("the process after the first one is at %s, %s; want the freed end", lastEnd.Path(), lastEnd.Address())
			}
			if isShared := p.inside == p.host; isShared != (name == "loopback") || !strings.Contains(link.About["network"], name) {
				t.Errorf("both ends share a namespace: %t; it is called %s", isShared, link.About["network"])
			}
		})
	}
}

func wantAbout(t *testing.T, link engine.Link) {
	t.Helper()
	kinds := map[string]string{"lo": "", "host0": "veth", "bridge0": "bridge"}
	if want, ok := kinds[link.About["interface"]]; !ok || link.About["kind"] != want {
		t.Errorf("the interface %q is of the kind %q", link.About["interface"], link.About["kind"])
	}
	if mtu := link.About["mtu"]; mtu != "1500" && mtu != "65536" {
		t.Errorf("the MTU is %q", mtu)
	}
	// The kernel enables these offloads on all the interfaces.
	for _, want := range []string{"tx", "tso", "gso"} {
		if !slices.Contains(strings.Fields(link.About["offloads"]), want) {
			t.Errorf("the offloads are %q, without %s", link.About["offloads"], want)
		}
	}
	if !strings.HasPrefix(link.Namespace, "/proc/") || strings.Contains(link.Namespace, "self") {
		t.Errorf("the host's end is at %s, which other processes cannot open", link.Namespace)
	}
}

// A new namespace has only a loopback interface, which is up.
func TestNewNamespace(t *testing.T) {
	needRoot(t)
	unchanged(t)
	n, err := New()
	must.Do(t, err)
	defer closeAll(t, n)
	err = n.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			isUp := l.Attrs().Flags&net.FlagUp != 0
			if isUp != (l.Attrs().Name == "lo") {
				t.Errorf("the interface %s is up: %t", l.Attrs().Name, isUp)
			}
			addresses, err := netlink.AddrList(l, netlink.FAMILY_V6)
			if err != nil || len(addresses) > 0 {
				t.Errorf("IPv6 addresses of %s: %v, %v", l.Attrs().Name, addresses, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	want := errors.New("from within")
	if err := n.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("Do gives %v, want %v", err, want)
	}
}
