// Package network is the networks of engines that have none of their own: the bridge of bare runtimes, and
// the pair of namespaces between which a bare process talks.
//
// All of a network lies in network namespaces that only this program holds open, by descriptors.
// The host has no bridge, interface, address, route or rule of it, and nothing to remove, however a run
// ends: the kernel removes a namespace with its last user. No packet leaves it. Addresses are
// those that RFC 2544 has set aside for benchmarks (198.18.0.0/15), in each network the same.
//
// Rejected: named namespaces (ip netns), which are mounts that a killed run leaves; a bridge in the host's
// namespace, whose firewall rules and addresses would have a part in what is measured.
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

// subnet is the network's; the host's end has its first address.
var (
	subnet   = netip.MustParsePrefix("198.18.0.0/16")
	hostAddr = subnet.Addr().Next()
)

// hardware gives the hardware address that goes with an address: a container that has an address after another one
// has the same for it, and what others remember of it stays true.
func hardware(a netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x54}, a.AsSlice()...) // 02: administered locally
}

// assign gives an address to an interface of this thread's namespace.
func assign(link netlink.Link, a netip.Addr) error {
	mask := net.CIDRMask(subnet.Bits(), a.BitLen())
	err := netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: mask}})
	if err != nil {
		return fmt.Errorf("assign %s to %s: %w", a, link.Attrs().Name, err)
	}
	return nil
}

// route sends all that is not for the subnet to the host's end.
func route(link netlink.Link) error {
	err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: hostAddr.AsSlice()})
	if err != nil {
		return fmt.Errorf("route to %s: %w", hostAddr, err)
	}
	return nil
}

// veth makes a pair of interfaces: name in this thread's namespace, with the hardware address of an
// address, and peer in another one. Both are down.
func veth(name string, a netip.Addr, peer string, other *Namespace) (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.HardwareAddr = name, hardware(a)
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: peer, PeerNamespace: netlink.NsFd(int(other.file.Fd()))})
	var link netlink.Link
	if err == nil {
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("make the interfaces %s and %s: %w", name, peer, err)
	}
	return link, nil
}

// Pair is where bare processes and the host's end are: in two namespaces that an Ethernet pair joins, or together in
// one. Its methods may be called from several goroutines.
type Pair struct {
	inside, host *Namespace
	address      netip.Addr // inside
	about        map[string]string

	mu      sync.Mutex
	present [2]int // processes at the inner and at the host's end
}

// End is the end of a pair at which a process is.
type End struct {
	pair    *Pair
	atHost  bool
	release sync.Once
}

// Connect chooses the end for a process: the one with fewer of them, or the inner one. Of two processes that talk to each
// other the second one is at the host's end, and what they say goes through the pair. Three or more share ends.
func (p *Pair) Connect() *End {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &End{pair: p, atHost: p.present[0] > p.present[1]}
	p.present[e.index()]++
	return e
}

func (e *End) index() int {
	if e.atHost {
		return 1
	}
	return 0
}

// Path is that of the namespace.
func (e *End) Path() string {
	if e.atHost {
		return e.pair.host.Path()
	}
	return e.pair.inside.Path()
}

// Address is that of the end.
func (e *End) Address() netip.Addr {
	if e.atHost {
		return hostAddr
	}
	return e.pair.address
}

// Close leaves the end to others. It is idempotent.
func (e *End) Close() {
	e.release.Do(func() {
		e.pair.mu.Lock()
		defer e.pair.mu.Unlock()
		e.pair.present[e.index()]--
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
	const inside, host = "eth0", "host0"
	err = p.inside.Do(func() error {
		link, err := veth(inside, p.address, host, p.host)
		if err != nil {
			return err
		}
		return errors.Join(assign(link, p.address), netlink.LinkSetUp(link))
	})
	if err == nil {
		err = p.host.Do(func() error {
			link, err := netlink.LinkByName(host)
			if err != nil {
				return err
			}
			if p.about, err = describe(host, "a veth pair between two network namespaces"); err != nil {
				return err
			}
			return errors.Join(assign(link, hostAddr), netlink.LinkSetUp(link))
		})
	}
	if err == nil {
		err = p.inside.Do(func() error {
			link, err := netlink.LinkByName(inside)
			if err != nil {
				return err
			}
			return route(link) // now that there is a way
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join two network namespaces: %w", err), p.Close())
	}
	p.about["peers"] = "one at each end of the pair"
	return p, nil
}

// NewLoopback makes one namespace for both ends. Its loopback interface has an address beside 127.0.0.1, which
// programs such as netperf cannot use where there is nothing else.
func NewLoopback() (*Pair, error) {
	n, err := New()
	if err != nil {
		return nil, err
	}
	p := &Pair{inside: n, host: n, address: hostAddr}
	err = n.Do(func() error {
		link, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if p.about, err = describe("lo", "the loopback interface of one network namespace"); err != nil {
			return err
		}
		return assign(link, hostAddr)
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

// Close lets go of both namespaces. It is idempotent.
func (p *Pair) Close() error {
	return errors.Join(p.inside.Close(), p.host.Close())
}

// describe is Describe with what packets go through as a whole.
func describe(name, whole string) (map[string]string, error) {
	about, err := Describe(name)
	if err == nil {
		about["network"] = whole
	}
	return about, err
}
