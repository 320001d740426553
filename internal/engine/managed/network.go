package managed

import (
	"context"
	"fmt"
	"net"

	"github.com/touchstone-bench/touchstone/internal/engine/network"
)

// listen listens on a port of the namespace's loopback address.
func listen(ctx context.Context, n *network.Namespace, port int) (l net.Listener, err error) {
	err = n.Do(func() (err error) {
		var listen net.ListenConfig
		l, err = listen.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	return l, err
}

// dial connects from within the namespace. The host of the address must be an IP address, because other threads look up
// names.
func dial(ctx context.Context, n *network.Namespace, kind, address string) (conn net.Conn, err error) {
	err = n.Do(func() (err error) {
		var dialer net.Dialer
		conn, err = dialer.DialContext(ctx, kind, address)
		return err
	})
	return conn, err
}
