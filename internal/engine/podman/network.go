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
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// networkName is the name of the run's network, in a network namespace of the target's own: Podman makes the bridge where its
// command runs, and leaves it there.
const networkName = "touchstone"

// networksDir is where Podman finds its networks, in the state directory.
const networksDir = "networks"

// backends make networks for Podman: CNI's plug-ins for versions 3 and 4, netavark for versions 4 and 5. For each a file
// in the directory describes the run's network. With CNI nothing is masqueraded and there are no rules for packets, as with
// other private engines; netavark always makes its rules (versions before 1.6 know no other way).
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

// makeNetwork describes the run's network to Podman, and tells what makes it. Podman chooses that as long as there is
// none: a file for CNI would be a reason to choose CNI.
func (e *Engine) makeNetwork(ctx context.Context) (backend string, err error) {
	if backend, err = e.run(ctx, e.command(ctx, manner{}, "info", "--format", "{{.Host.NetworkBackend}}")); err != nil {
		return "", fmt.Errorf("ask Podman what makes its networks: %w", err)
	}
	b, ok := backends[backend]
	if !ok {
		return "", fmt.Errorf("it is not known how to describe a network to %.20q, which makes those of Podman here", backend)
	}
	if err := os.WriteFile(filepath.Join(e.state, networksDir, b.file), []byte(b.text), 0o600); err != nil {
		return "", fmt.Errorf("describe a network: %w", err)
	}
	return backend, nil
}

// tryBridge tries a container on the bridge, and learns the way to it. That there is no bridge is no reason not to use
// Podman.
func (e *Engine) tryBridge(ctx context.Context) error {
	if e.Missing[engine.NetworkBridge] != "" {
		return nil
	}
	link, err := e.findLink(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = err.Error()
	}
	e.link = link
	return nil
}

func (e *Engine) findLink(ctx context.Context) (engine.Link, error) {
	backend, err := e.makeNetwork(ctx)
	if err != nil {
		return engine.Link{}, err
	}
	c, err := e.Create(ctx, engine.Spec{
		ID: fmt.Sprintf("%s%s-try", engine.Prefix, e.session.RunID), Image: e.session.Registry.Probe(),
		Process: engine.Process{Args: []string{"/probe", "ready"}}, Network: engine.Bridged,
	})
	if err != nil {
		return engine.Link{}, err
	}
	b := c.(*box)
	var link engine.Link
	if err = b.Start(ctx); err == nil {
		var address netip.Addr
		if address, err = b.Address(ctx); err == nil {
			link, err = e.mounts.Link(address)
		}
	}
	if err = errors.Join(err, b.undo(ctx)); err != nil {
		return engine.Link{}, err
	}
	link.About["network"] = "Podman " + backend
	return link, nil
}

// Link implements engine.Networker.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Address implements engine.Addressed.
func (b *box) Address(ctx context.Context) (netip.Addr, error) {
	const op = "ask for the address of"
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

// addressIn reads the address of a container from the networks that Podman says it is in.
func addressIn(answer string) (netip.Addr, error) {
	var in map[string]struct{ IPAddress string }
	if err := json.Unmarshal([]byte(answer), &in); err != nil {
		return netip.Addr{}, fmt.Errorf("what Podman says of its networks is %.80q: %w", answer, err)
	}
	address, err := netip.ParseAddr(in[networkName].IPAddress)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("it has none in the network %s: %w", networkName, err)
	}
	return address, nil
}
