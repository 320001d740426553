package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The names of the bridge and of a container's interface, each in its own namespace.
const (
	bridgeName = "bridge0"
	portName   = "eth0"
)

// Bridge is a namespace with a bridge. The bridge's own interface is the host's end. The methods may be called from
// several goroutines.
type Bridge struct {
	ns    *Namespace
	about map[string]string

	mu   sync.Mutex
	last netip.Addr // of the port that was made last
	used map[netip.Addr]bool
}

// NewBridge makes a bridge without ports.
func NewBridge() (*Bridge, error) {
	ns, err := New()
	if err != nil {
		return nil, err
	}
	b := &Bridge{ns: ns, last: hostAddr, used: map[netip.Addr]bool{}}
	err = ns.Do(func() (err error) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.HardwareAddr = bridgeName, hardware(hostAddr)
		snooping := false // multicast snooping sends queries to the ports now and then
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes, MulticastSnooping: &snooping}); err != nil {
			return err
		}
		if b.about, err = describe(bridgeName, "a veth pair into a Linux bridge, whose own interface is the host's end"); err != nil {
			return err
		}
		return assign(bridgeName, hostAddr)
	})
	if err == nil {
		err = b.describePort()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a bridge: %w", err), ns.Close())
	}
	return b, nil
}

// describePort adds the properties of a container's interface to the description. It makes a port for that, so that the
// creation of containers takes no longer.
func (b *Bridge) describePort() (err error) {
	p, err := b.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var facts map[string]string
	err = p.ns.Do(func() (err error) {
		facts, err = Describe(portName)
		return err
	})
	for name, value := range facts {
		b.about["container's "+name] = value
	}
	return err
}

// Link describes the network.
func (b *Bridge) Link() engine.Link {
	return engine.Link{Namespace: b.ns.Path(), Host: hostAddr, About: b.about}
}

// Close closes the bridge. Open ports keep their namespaces. It is idempotent.
func (b *Bridge) Close() error { return b.ns.Close() }

// Port is the network namespace of one container with the interface eth0, whose other end is in the bridge.
type Port struct {
	bridge  *Bridge
	ns      *Namespace
	address netip.Addr
}

// Connect makes a namespace with an interface in the bridge, an address and a default route. Containers do not share
// namespaces: gVisor moves the addresses from the interface to its own network stack.
func (b *Bridge) Connect() (*Port, error) {
	address, err := b.reserve()
	if err != nil {
		return nil, err
	}
	p := &Port{bridge: b, address: address}
	if err := p.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("connect a network namespace to the bridge: %w", err), p.Close())
	}
	return p, nil
}

func (p *Port) connect() (err error) {
	if p.ns, err = New(); err != nil {
		return err
	}
	err = p.bridge.ns.Do(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = p.name()
		bridge, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		attributes.MasterIndex = bridge.Attrs().Index
		err = netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attributes, PeerName: portName, PeerHardwareAddr: hardware(p.address),
			PeerNamespace: netlink.NsFd(int(p.ns.file.Fd())),
		})
		if err != nil {
			return err
		}
		return up(p.name())
	})
	if err != nil {
		return err
	}
	return p.ns.Do(func() error {
		if err := assign(portName, p.address); err != nil {
			return err
		}
		return route(portName)
	})
}

// reserve chooses an address. A released address is reused only after all others.
func (b *Bridge) reserve() (netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range 1 << (b.last.BitLen() - subnet.Bits()) {
		b.last = b.last.Next()
		if !subnet.Contains(b.last.Next()) { // the last address is the broadcast address
			b.last = hostAddr.Next()
		}
		if !b.used[b.last] {
			b.used[b.last] = true
			return b.last, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are in use", subnet)
}

// name is the name of the interface in the bridge.
func (p *Port) name() string {
	a := p.address.As4()
	return fmt.Sprintf("%s%d-%d", portPrefix, a[2], a[3])
}

// portPrefix begins the names of interfaces in bridges.
const portPrefix = "touch"

// Path is the path of the namespace, for the runtime.
func (p *Port) Path() string { return p.ns.Path() }

// Address is the address of the interface.
func (p *Port) Address() netip.Addr { return p.address }

// Close removes the interface from the bridge and closes the namespace. It is idempotent.
func (p *Port) Close() error {
	if p.ns == nil { // New failed
		p.bridge.release(p.address)
		return nil
	}
	err := p.bridge.ns.Do(func() error {
		link, err := netlink.LinkByName(p.name())
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if _, isGone := errors.AsType[netlink.LinkNotFoundError](err); isGone {
			return nil
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrClosed) { // a closed bridge has no ports
		return fmt.Errorf("remove the interface %s from the bridge: %w", p.name(), err)
	}
	p.bridge.release(p.address)
	return p.ns.Close()
}

func (b *Bridge) release(a netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.used, a)
}
