package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// bridge is the daemon's default network.
const bridge = "bridge"

// findBridge finds the daemon's bridge. A daemon without a bridge only lacks the capability.
func (e *Engine) findBridge(ctx context.Context) error {
	switch {
	case e.Missing[engine.NetworkBridge] != "":
		return nil
	case e.target.Rootless:
		e.Missing[engine.NetworkBridge] = "rootless Docker has its bridge in its own network namespace, which cannot be reached from here"
		return nil
	}
	link, err := e.inspectBridge(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = fmt.Sprintf("the daemon's network %s: %v", bridge, &saidError{err})
	}
	e.link = link
	return nil
}

func (d *daemon) inspectBridge(ctx context.Context) (engine.Link, error) {
	answer, err := d.client.NetworkInspect(ctx, bridge, client.NetworkInspectOptions{})
	if err != nil {
		return engine.Link{}, err
	}
	var inside netip.Addr // an address of the network, assigned or not
	for _, c := range answer.Network.IPAM.Config {
		if c.Subnet.IsValid() && (c.Subnet.Addr().Is4() || !inside.IsValid()) {
			inside = c.Subnet.Masked().Addr().Next()
		}
	}
	if !inside.IsValid() {
		return engine.Link{}, errors.New("it has no subnet")
	}
	find := managed.HostLink
	if d.private != nil {
		find = d.private.Link
	}
	link, err := find(inside)
	if err != nil {
		return engine.Link{}, err
	}
	link.About["network"] = "Docker " + answer.Network.Driver
	return link, nil
}

// Link implements engine.Networker.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Address implements engine.Addressed.
func (b *container) Address(ctx context.Context) (netip.Addr, error) {
	const op = "query the address of"
	answer, err := request(ctx, b, op, b.e.client.ContainerInspect, client.ContainerInspectOptions{})
	if err != nil {
		return netip.Addr{}, err
	}
	if settings := answer.Container.NetworkSettings; settings != nil {
		if end := settings.Networks[bridge]; end != nil && end.IPAddress.IsValid() {
			return end.IPAddress, nil
		}
	}
	return netip.Addr{}, b.explain(ctx, op, errors.New("it has no address in the network "+bridge))
}
