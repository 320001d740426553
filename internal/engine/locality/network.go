package locality

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// reachLimit is the deadline for a container to reach a listener on its own loopback interface. A refused connection is tried again until then.
const reachLimit = 3 * time.Second

// network checks that a container on the host's network has the network of this program.
func (c *check) network(ctx context.Context) (err error) {
	if c.Engine.Supports(engine.NetworkHost) != nil {
		return nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("check the network of %s: %w", c.Daemon, err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	addr := listener.Addr().(*net.TCPAddr).AddrPort()
	var output excerpt
	exit, refusal, err := c.runTwice(ctx, func() engine.Spec {
		spec := c.spec(engine.HostNet, probe.Reach(netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), reachLimit)...)
		spec.Process.Stderr = &output
		return spec
	})
	switch {
	case err != nil:
		return err
	case refusal != nil && c.Users != "":
		c.Missing[engine.NetworkHost] = fmt.Sprintf("%s: %v; use --managed for a private daemon", c.Users, refusal)
	case refusal != nil:
		c.Missing[engine.NetworkHost] = fmt.Sprintf("%s runs no container on the host's network: %v; use --managed for a private daemon", c.Daemon, refusal)
	case !exit.OK():
		c.Missing[engine.NetworkHost] = fmt.Sprintf("a container of %s on the host's network does not reach this program at %s (%s), so the daemon has another network; %s",
			c.Daemon, addr, output.String(), c.inContainer("--network=host", "start Touchstone in the network namespace of the daemon, or use --managed for a private daemon"))
	}
	return nil
}
