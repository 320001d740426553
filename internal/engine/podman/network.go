package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// networkName is the name of the run's network. Podman makes the bridge in the network namespace of its command, which is the
// target's own, and leaves it there.
const networkName = "touchstone"

// networksDir is the directory of Podman's networks, in the state directory.
const networksDir = "networks"

// backends make Podman's networks: CNI's plug-ins for versions 3 and 4, netavark for versions 4 and 5. Each has a file that
// describes the run's network. CNI's has no masquerading and no packet filter rules, like the other private engines. netavark
// always makes its rules, because versions before 1.6 cannot omit them.
var backends = map[string]struct{ file, text string }{
	"cni": {networkName + ".conflist", fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": %q,
  "plugins": [{
    "type": "bridge", "bridge": %q, "isGateway": true, "ipMasq": false,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": %q, "gateway": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`, networkName, managed.BridgeName, managed.BridgeSubnet, managed.BridgeHost)},
	"netavark": {networkName + ".json", fmt.Sprintf(`{
  "name": %q, "id": "%064x", "driver": "bridge", "network_interface": %q, "created": "2026-01-01T00:00:00Z",
  "subnets": [{"subnet": %q, "gateway": %q}], "ipv6_enabled": false, "internal": false, "dns_enabled": false,
  "ipam_options": {"driver": "host-local"}
}
`, networkName, networkName, managed.BridgeName, managed.BridgeSubnet, managed.BridgeHost)},
}

// makeNetwork writes the description of the run's network, and returns its backend. Podman chooses the backend while there is no
// network: a file for CNI would make it choose CNI.
func (e *Engine) makeNetwork(ctx context.Context) (backend string, err error) {
	if backend, err = e.run(ctx, e.command(ctx, invocation{}, "info", "--format", "{{.Host.NetworkBackend}}")); err != nil {
		return "", fmt.Errorf("query Podman's network backend: %w", err)
	}
	b, ok := backends[backend]
	if !ok {
		return "", fmt.Errorf("the network backend of Podman here is %.20q, which Touchstone does not support", backend)
	}
	if err := os.WriteFile(filepath.Join(e.state, networksDir, b.file), []byte(b.text), 0o600); err != nil {
		return "", fmt.Errorf("describe a network: %w", err)
	}
	return backend, nil
}

// tryBridge runs a container on the bridge, and finds the link to it. Without a bridge the target only lacks the capability.
func (e *Engine) tryBridge(ctx context.Context) error {
	if e.Missing[engine.NetworkBridge] != "" {
		return nil
	}
	link, err := e.findLink(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = diagnosis.Lack(err, e.facts(), "", "")
	}
	e.link = link
	return nil
}

func (e *Engine) findLink(ctx context.Context) (engine.Link, error) {
	backend, err := e.makeNetwork(ctx)
	if err != nil {
		return engine.Link{}, err
	}
	c, err := e.Create(ctx, e.Session.TestSpec("", engine.Bridged, "/probe", "ready"))
	if err != nil {
		return engine.Link{}, err
	}
	b := c.(*container)
	var link engine.Link
	if err = b.Start(ctx); err == nil {
		var address netip.Addr
		if address, err = b.Address(ctx); err == nil {
			link, err = e.mounts.Link(address)
		}
	}
	if err = errors.Join(err, engine.Undo(ctx, b)); err != nil {
		return engine.Link{}, err
	}
	link.About["network"] = "Podman " + backend
	return link, nil
}

// Link implements engine.Networker.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Outward implements engine.Outgoing.
func (*Engine) Outward() (engine.Outward, error) {
	return engine.Outward{}, engine.NoWayOut("measure the same runtime alone, such as oci/runc, or by a Docker or CRI daemon of your own")
}

// Address implements engine.Addressed.
func (b *container) Address(ctx context.Context) (netip.Addr, error) {
	const op = "query the address of"
	answer, err := b.call(ctx, op, "container", "inspect", "--format", "{{json .NetworkSettings.Networks}}")
	if err != nil {
		return netip.Addr{}, err
	}
	address, err := addressIn(answer)
	if err != nil {
		return netip.Addr{}, b.explain(op, err)
	}
	return address, nil
}

// addressIn reads the address of a container from Podman's list of its networks.
func addressIn(answer string) (netip.Addr, error) {
	var in map[string]struct{ IPAddress string }
	if err := json.Unmarshal([]byte(answer), &in); err != nil {
		return netip.Addr{}, fmt.Errorf("parse Podman's list of its networks %.80q: %w", answer, err)
	}
	address, err := netip.ParseAddr(in[networkName].IPAddress)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("it has no address in the network %s: %w", networkName, err)
	}
	return address, nil
}
