// Package network makes the networks of engines without a network of their own: the bridge of bare runtimes, and the
// pair of namespaces between two bare processes.
//
// A network lies entirely in network namespaces that only this program holds open, by descriptors. The host has no
// bridge, interface, address, route or rule of it. However a run ends, nothing remains: the kernel removes a
// namespace with its last user. No packet leaves the network. All networks use the same addresses, from the range
// for benchmarks in RFC 2544 (198.18.0.0/15).
//
// Rejected: named namespaces (ip netns), which are mounts that a killed run leaves; a bridge in the host's
// namespace, whose firewall rules and addresses would be measured too.
//
// Invariant runtime-namespaces: A bare runtime leaves no mount, interface or rule on the host: bridge, interfaces and writable layers are in
// namespaces that disappear with the program.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The host's end of a network has the first address of the subnet.
var (
	subnet   = netip.MustParsePrefix("198.18.0.0/16")
	hostAddr = subnet.Addr().Next()
)

// hardware derives the hardware address from the IP address. A container that reuses the IP address of another one then
// has its hardware address too, and the neighbour caches of its peers stay valid.
func hardware(a netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x54}, a.AsSlice()...) // 02: administered locally
}

// assign adds an address to an interface of this thread's namespace, and brings the interface up.
func assign(name string, a netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		mask := net.CIDRMask(subnet.Bits(), a.BitLen())
		err = netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: mask}})
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("assign %s to %s: %w", a, name, err)
	}
	return nil
}

// route adds a default route to the host's end, which must be up.
func route(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: hostAddr.AsSlice()})
	}
	if err != nil {
		return fmt.Errorf("route to %s: %w", hostAddr, err)
	}
	return nil
}

// Pair is the network of bare processes and the host's end: two namespaces with a veth pair between them, or one namespace
// for both. Its methods may be called from several goroutines.
type Pair struct {
	inside, host *Namespace
	address      netip.Addr // inside
	about        map[string]string

	mu      sync.Mutex
	present [2]int // number of processes at the inner and at the host's end
}

// End is one process's end of a pair.
type End struct {
	pair    *Pair
	index   int // 1 at the host's end, 0 at the inner one
	release sync.Once
}

// Connect chooses the end with fewer processes, or the inner end if both have the same number. The second of two
// processes is therefore at the host's end, and their packets go through the pair. Three or more processes share ends.
func (p *Pair) Connect() *End {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &End{pair: p}
	if p.present[0] > p.present[1] {
		e.index = 1
	}
	p.present[e.index]++
	return e
}

// Path is the path of the end's namespace.
func (e *End) Path() string {
	return [2]*Namespace{e.pair.inside, e.pair.host}[e.index].Path()
}

// Address is the address of the end.
func (e *End) Address() netip.Addr {
	return [2]netip.Addr{e.pair.address, hostAddr}[e.index]
}

// Close frees the end for other processes. It is idempotent.
func (e *End) Close() {
	e.release.Do(func() {
		e.pair.mu.Lock()
		defer e.pair.mu.Unlock()
		e.pair.present[e.index]--
	})
}

// NewPair makes two namespaces that are joined by a veth pair.
func NewPair() (*Pair, error) {
	p := &Pair{address: hostAddr.Next()}
	var err error
	if p.inside, err = New(); err != nil {
		return nil, err
	}
	if p.host, err = New(); err != nil {
		return nil, errors.Join(err, p.inside.Close())
	}
	const guest, host = "eth0", "host0"
	err = p.inside.Do(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.HardwareAddr = guest, hardware(p.address)
		err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: host, PeerNamespace: netlink.NsFd(int(p.host.file.Fd()))})
		if err != nil {
			return fmt.Errorf("make the interfaces %s and %s: %w", guest, host, err)
		}
		return assign(guest, p.address)
	})
	if err == nil {
		err = p.host.Do(func() (err error) {
			if p.about, err = describe(host, "a veth pair between two network namespaces"); err != nil {
				return err
			}
			return assign(host, hostAddr)
		})
	}
	if err == nil {
		err = p.inside.Do(func() error { return route(guest) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join two network namespaces: %w", err), p.Close())
	}
	p.about["peers"] = "one at each end of the pair"
	return p, nil
}

// NewLoopback makes one namespace for both ends. Its loopback interface has a second address, because programs such as
// netperf cannot use 127.0.0.1 as the only address.
func NewLoopback() (*Pair, error) {
	n, err := New()
	if err != nil {
		return nil, err
	}
	p := &Pair{inside: n, host: n, address: hostAddr}
	err = n.Do(func() (err error) {
		if p.about, err = describe("lo", "the loopback interface of one network namespace"); err != nil {
			return err
		}
		return assign("lo", hostAddr)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("give the loopback interface an address: %w", err), n.Close())
	}
	return p, nil
}

// Link describes the network.
func (p *Pair) Link() engine.Link {
	return engine.Link{Namespace: p.host.Path(), Host: hostAddr, About: p.about}
}

// Close closes both namespaces. It is idempotent.
func (p *Pair) Close() error {
	return errors.Join(p.inside.Close(), p.host.Close())
}

// describe is Describe with the path of packets through the whole network.
func describe(name, route string) (map[string]string, error) {
	facts, err := Describe(name)
	if err == nil {
		facts["network"] = route
	}
	return facts, err
}
