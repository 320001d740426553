package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

func (a *App) peerCommand() *cobra.Command {
	var listen, secretFile string
	cmd := &cobra.Command{
		Use:   "peer --listen ADDRESS",
		Short: "Run the servers of network benchmarks for a run on another machine",
		Long: fmt.Sprintf(`Runs the servers of the network benchmarks for a run on another machine: iperf3, netserver
and nginx from the workload image, as processes without any rights: of the user nobody, as root. The
plan of the run names this machine:

  - {name: performance.network, params: {peer: ADDRESS}}

Each trial has a server of its own, which starts before the trial and is killed after it. One
client is served at a time. Both machines need the same version of touchstone.

--listen is the address of this machine's interface to the other machine, perhaps with a port.
Only that address listens: the port (%d if none is given) and the %d ports after it for TCP, and
the third of these also for UDP.

The run needs the secret that the command prints at its start, in the environment variable
TOUCHSTONE_PEER_SECRET or in a file that touchstone benchmark --secret-file names. The
secret is a fresh one unless the variable or --secret-file has one here too, as for several
machines. Anyone who reaches the address can use the servers during a trial, because they
have no password of their own. So do not name an address that strangers reach.

The first ^C ends the servers and removes everything. The second ^C does so at once.`, remote.Port, remote.Ports-1),
		Example: `  touchstone peer --listen 192.0.2.7
  touchstone peer --listen 192.0.2.7:9000
  touchstone peer --listen 192.0.2.7 --secret-file secret`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			endpoint, err := parseListen(listen)
			if err != nil {
				return usage(err)
			}
			return a.servePeer(cmd.Context(), endpoint, secretFile)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "IPv4 `ADDRESS` of this machine, or ADDRESS:PORT")
	addSecretFile(cmd, &secretFile)
	return cmd
}

// leastPort is the least port that a program without capabilities may use.
const leastPort = 1024

// parseListen reads the value of --listen. A host name is refused: it may have several addresses.
func parseListen(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, errors.New("--listen names no address: give the IPv4 address of this machine's interface to the other machine, such as --listen 192.0.2.7")
	}
	r, err := remote.Parse(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--listen: %w; give the IPv4 address of this machine's interface to the other machine", err)
	}
	if r.Port+1 < leastPort {
		return netip.AddrPort{}, fmt.Errorf("--listen: the servers after the port %d have no right to ports below %d; give a port from %d", r.Port, leastPort, leastPort-1)
	}
	address, err := netip.ParseAddr(r.Host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--listen: %q is a host name: give the IPv4 address", r.Host)
	}
	return netip.AddrPortFrom(address, r.Port), nil
}

func (a *App) servePeer(ctx context.Context, address netip.AddrPort, secretFile string) error {
	secret, err := a.peerSecret(secretFile)
	if err != nil {
		return err
	}
	isGiven := secret.Given()
	if !isGiven {
		secret = peer.NewSecret()
	}
	progress := &progress{status: a.status}
	var mu sync.Mutex
	ready := false
	s := execution.NewServer(execution.ServerConfig{
		RunID: a.env.RunID(), Version: version, Secret: secret, Listen: address,
		Report: func(e execution.Event) {
			mu.Lock()
			defer mu.Unlock()
			progress.Report(e)
		},
		Ready: func() {
			ready = true
			progress.clear()
			name := remote.Place{Host: address.Addr().String(), Port: address.Port()}
			fmt.Fprintf(a.env.Stdout, "listening on %s, TCP ports %d to %d and UDP port %d; on the other machine, write in a plan below benchmarks:\n",
				address.Addr(), address.Port(), address.Port()+remote.Ports-1, remote.Netserver.Port(address.Port())+1)
			fmt.Fprintf(a.env.Stdout, "  - {name: performance.network, params: {peer: %q}}\n", name)
			if !isGiven {
				fmt.Fprintf(a.env.Stdout, "and set %s to this secret there, or write it to a file for --secret-file:\n  %s\n", peer.SecretVariable, secret.Reveal())
			}
			fmt.Fprintln(a.env.Stdout, "^C ends the servers")
		},
	})
	defer a.onAbandon(s.Abandon)()
	err = s.Run(ctx)
	progress.clear()
	if err != nil && ctx.Err() != nil && !ready {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}
