package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/export"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/web"
)

// uiAddress is the address of the pages without --listen.
const uiAddress = "127.0.0.1:8642"

// The time limits of the server. A report of 10⁶ samples takes seconds, and two of them are made at a time.
const (
	uiReadLimit  = 10 * time.Second
	uiWriteLimit = 10 * time.Minute
	uiIdleLimit  = 2 * time.Minute
	// uiEndLimit is the time for the answers under way after the first ^C.
	uiEndLimit = 3 * time.Second
)

func (a *App) uiCommand() *cobra.Command {
	var dir, listen, tokenFile string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the results in a browser, and runs under way with their progress",
		Long: `Serves the results of a folder as pages, until ^C: the runs with search and filters, the report
of a run, the comparison of two sides, the history of a metric, the machines and the baselines.
A run under way has a page with its progress and the time left. Every page has links to its
other formats. The pages are read-only and need no script.

Without --listen the pages are at ` + uiAddress + `, and only users of this machine reach them. At an
address that other machines reach, every request needs a token. The command prints an address
with a fresh one, unless --token-file names a file with one. The connection is not encrypted:
use an SSH tunnel to the loopback address where others can read it.`,
		Example: `  touchstone ui
  touchstone ui -d out --listen 9000
  touchstone ui --listen 192.0.2.7:8642 --token-file token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := parsePort(listen)
			if err != nil {
				return usage(fmt.Errorf("--listen: %w; give a port of this machine or an address with a port, such as --listen %s", err, uiAddress))
			}
			return a.serveUI(cmd.Context(), dir, address, tokenFile)
		},
	}
	addDir(cmd, &dir)
	cmd.Flags().StringVar(&listen, "listen", uiAddress, "`ADDRESS` of the pages, a port or ADDRESS:PORT; port 0 is a free one")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`FILE` with the token that each request needs")
	return cmd
}

// serveUI serves the pages until the context ends.
func (a *App) serveUI(ctx context.Context, dir string, address netip.AddrPort, tokenFile string) error {
	token, err := uiToken(tokenFile, address)
	if err != nil {
		return err
	}
	saveMemory(mostGarbage)
	read := func(ctx context.Context, do func(*store.Store) error) error { return a.withStore(ctx, dir, do) }
	if err := read(ctx, func(*store.Store) error { return nil }); err != nil {
		fmt.Fprintf(a.env.Stderr, "note: the pages have no results yet: %v\n", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("--listen: %w; give another port, or 0 for a free one", err)
	}
	server := &http.Server{
		Handler: web.New(web.Config{
			Read: read,
			Write: func(w io.Writer, name string, d *document.Document) error {
				return a.writeDocument(clean(w), format(name), name, d)
			},
			Exports: uiExports(),
			Address: address.Addr(), Token: token.Reveal(),
		}),
		ReadTimeout: uiReadLimit, WriteTimeout: uiWriteLimit, IdleTimeout: uiIdleLimit, MaxHeaderBytes: 1 << 16,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	end := make(chan error, 1)
	go func() { end <- server.Serve(listener) }()
	a.announce(reachable(listener.Addr()), token, tokenFile)
	select {
	case err = <-end:
		return fmt.Errorf("serve the pages: %w", err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), uiEndLimit)
	defer cancel()
	if errors.Is(server.Shutdown(shutdown), context.DeadlineExceeded) {
		_ = server.Close() // the clients see that their answers end
	}
	return nil
}

// uiExports are the formats of whole runs: their JSON, and the formats in one file that no answer has.
func uiExports() []web.Export {
	exports := []web.Export{{Name: "export", Write: func(w io.Writer, runs ...result.Run) error {
		return result.Encode(jsonWriter(clean(w)), result.Document{Generator: tool(), Runs: runs})
	}}}
	for _, f := range export.Formats() {
		if f.Single || f.JSON || slices.Contains(documentFormats(), format(f.Name)) {
			continue
		}
		exports = append(exports, web.Export{Name: f.Name, Write: func(w io.Writer, runs ...result.Run) error {
			return f.Parts[0].Write(clean(w), export.New(runs))
		}})
	}
	return exports
}

// reachable returns the addresses of a listener for a browser. A listener at all addresses has each address of the machine, the loopback ones last. An
// address that is valid only on one link is left out, because a browser accepts no zone.
func reachable(listener net.Addr) []string {
	bound, err := netip.ParseAddrPort(listener.String())
	if err != nil || !bound.Addr().IsUnspecified() {
		return []string{listener.String()}
	}
	interfaces, _ := net.InterfaceAddrs() // without one the listener's address remains
	var machine, loopback []string
	for _, i := range interfaces {
		prefix, err := netip.ParsePrefix(i.String())
		address := prefix.Addr()
		switch text := netip.AddrPortFrom(address, bound.Port()).String(); {
		case err != nil, address.IsLinkLocalUnicast(), bound.Addr().Is4() && !address.Is4():
		case address.IsLoopback():
			loopback = append(loopback, text)
		default:
			machine = append(machine, text)
		}
	}
	if list := slices.Concat(machine, loopback); list != nil {
		return list
	}
	return []string{listener.String()}
}

// announce prints the addresses of the pages, one a line. A token of the user's is not repeated.
func (a *App) announce(addresses []string, token peer.Secret, tokenFile string) {
	path := ""
	switch {
	case tokenFile != "":
		path = "login?token=TOKEN"
	case token.Given():
		path = "login?token=" + token.Reveal()
	}
	var lines strings.Builder
	for _, address := range addresses {
		fmt.Fprintf(&lines, "http://%s/%s\n", address, path)
	}
	fmt.Fprint(a.env.Stdout, lines.String())
	fmt.Fprintln(a.env.Stderr, "^C ends the pages")
}

// uiToken returns the token of the pages: the content of a file, else a fresh one for an address that other machines reach, else none.
func uiToken(file string, address netip.AddrPort) (peer.Secret, error) {
	switch {
	case file != "":
		s, err := peer.ReadSecret(file)
		if err != nil {
			return s, fmt.Errorf("--token-file: %w", err)
		}
		return s, nil
	case address.Addr().IsLoopback():
		return peer.Secret{}, nil
	}
	return peer.NewSecret(), nil
}
