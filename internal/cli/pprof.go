package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// profiled adds --pprof to a verb that may take long. The server of the profiles starts before the verb and ends with it. Without a request it
// only listens, so it does no work during a trial.
func (a *App) profiled(cmd *cobra.Command) *cobra.Command {
	var address string
	cmd.Flags().StringVar(&address, "pprof", "", "serve profiles of this program at a loopback `PORT` or ADDRESS:PORT")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("pprof") {
			return run(cmd, args)
		}
		endpoint, err := parseLoopback(address)
		if err != nil {
			return usage(fmt.Errorf("--pprof: %w; give a port of this machine, such as --pprof 6060", err))
		}
		stop, err := a.serveProfiles(cmd.Context(), endpoint)
		if err != nil {
			return fmt.Errorf("--pprof: %w; give another port, or 0 for a free one", err)
		}
		defer stop()
		return run(cmd, args)
	}
	return cmd
}

// parseLoopback reads a port or an address with a port. An address that other machines can reach is refused: profiles have no password.
func parseLoopback(text string) (netip.AddrPort, error) {
	address, err := parsePort(text)
	if err == nil && !address.Addr().IsLoopback() {
		err = fmt.Errorf("%s is no loopback address, so other machines could read the profiles", address.Addr())
	}
	return address, err
}

// parsePort reads a port of the loopback address, or an address with a port.
func parsePort(text string) (netip.AddrPort, error) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
	}
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		err = fmt.Errorf("%q is no port and no IP address with a port", text)
	}
	return address, err
}

// profileHeaderLimit is the longest time for the header of a request.
const profileHeaderLimit = 10 * time.Second

// serveProfiles serves the profiles at an address, and prints it, until stop is called. It has handlers of its own: no server of this program
// uses those that the package pprof registers for all.
func (a *App) serveProfiles(ctx context.Context, address netip.AddrPort) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	handlers := http.NewServeMux()
	handlers.HandleFunc("/debug/pprof/", pprof.Index)
	handlers.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	handlers.HandleFunc("/debug/pprof/profile", pprof.Profile)
	handlers.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	handlers.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{
		Handler: handlers, ReadHeaderTimeout: profileHeaderLimit,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		_ = server.Serve(listener) // it always returns an error after Close
	}()
	fmt.Fprintf(a.env.Stderr, "profiles of this program: http://%s/debug/pprof/\n", listener.Addr())
	return func() {
		_ = server.Close() // the program needs no profile any more
		<-end
	}, nil
}
