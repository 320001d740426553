package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// Link implements engine.Networker. Every pod outside of the host's network is in the network of the engine's CNI plug-ins,
// whether it is Bridged or not: the engine has no other network.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Address implements engine.Addressed.
func (c *container) Address(ctx context.Context) (netip.Addr, error) {
	const op = "get the address of"
	if err := c.check(op); err != nil {
		return netip.Addr{}, err
	}
	answer, err := c.e.service.PodSandboxStatus(ctx, &api.PodSandboxStatusRequest{PodSandboxId: c.pod})
	if err != nil {
		return netip.Addr{}, c.explain(ctx, op, err)
	}
	address, err := netip.ParseAddr(answer.GetStatus().GetNetwork().GetIp())
	if err != nil {
		return netip.Addr{}, c.explain(ctx, op, fmt.Errorf("its pod has none: %w", err))
	}
	return address.Unmap(), nil
}

// meet finds the network path to pods from the address of a created container. An engine with unreachable pods can be used,
// without bridged networks.
func (e *Engine) meet(ctx context.Context, c *container) error {
	if _, known := e.Missing[engine.NetworkBridge]; known {
		return nil
	}
	link, err := e.findLink(ctx, c)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = "the network of its pods: " + err.Error() + "; look at the engine's network configuration (CNI)"
	}
	e.link = link
	return nil
}

func (e *Engine) findLink(ctx context.Context, c *container) (engine.Link, error) {
	address, err := c.Address(ctx)
	if err != nil {
		return engine.Link{}, err
	}
	find, names := managed.HostLink, e.service.plugins
	if e.service.private != nil { // it may not report its plug-ins
		find, names = e.service.private.Link, cmp.Or(names, privatePlugin)
	}
	link, err := find(address)
	if err != nil {
		return engine.Link{}, err
	}
	if names != "" {
		link.About["network"] = "CNI " + names
	}
	return link, nil
}

// plugins reads the CNI plug-ins from containerd's verbose status, in their order. It returns an empty string for other
// engines.
func plugins(config string) string {
	var network struct {
		Networks []struct {
			Config struct {
				Plugins []struct{ Network struct{ Type string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(config), &network); err != nil {
		return ""
	}
	var names []string
	for _, n := range network.Networks {
		for _, p := range n.Config.Plugins {
			if name := word(p.Network.Type); name != "" && name != "loopback" {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}
