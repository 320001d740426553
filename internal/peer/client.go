package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// Time limits of a client.
const (
	connectLimit = 10 * time.Second
	answerLimit  = 25 * time.Second // the other machine starts a server meanwhile, and a call of a trial has 30 seconds
)

// Client opens sessions with touchstone peer on other machines.
type Client struct {
	// Version is Touchstone's, and Secret the other machine's too.
	Version string
	Secret  Secret
	// Lookup returns the IPv4 addresses of a host name, and Local reports whether an address belongs to this machine.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Local  func(netip.Addr) (bool, error)
	// Machine identifies this machine: the result of Machine.
	Machine string
}

// NewClient returns a client that uses this machine's resolver.
func NewClient(version string, secret Secret) (Client, error) {
	machine, err := Machine()
	lookup := func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	}
	local := func(a netip.Addr) (bool, error) {
		addrs, err := Own()
		return slices.Contains(addrs, a), err
	}
	return Client{Version: version, Secret: secret, Machine: machine, Lookup: lookup, Local: local}, err
}

// Check returns a description of the other machine if touchstone peer of this version answers there and is idle. It starts no server.
func (c Client) Check(ctx context.Context, machine remote.Place) (About, error) {
	s, err := c.Open(ctx, machine, "")
	if err != nil {
		return About{}, err
	}
	return s.About, s.conn.Close()
}

// About describes the other machine.
type About struct {
	// Local is this machine's address on the path to it, and Control the address of touchstone peer.
	Local   netip.Addr
	Control netip.AddrPort
	// Same is set if the other machine is this one, in another network namespace.
	Same bool
	// Facts are its description of itself, by AboutMachine and the like.
	Facts map[string]string
}

// Session is a server on another machine, from Open to Close.
type Session struct {
	About
	// Server is the server's address.
	Server netip.AddrPort

	name remote.Server
	conn *net.TCPConn

	ended chan struct{} // closed with the connection

	mu     sync.Mutex
	closed bool
	err    error // the reason of the end, once ended is closed
}

// Open starts a server on another machine, and returns when it listens. The errors name the place, the reason and the remedy.
func (c Client) Open(ctx context.Context, machine remote.Place, server remote.Server) (*Session, error) {
	s, err := c.open(ctx, machine, server)
	if err != nil {
		return nil, fmt.Errorf("use the server on another machine, %s: %w", machine, err)
	}
	return s, nil
}

func (c Client) open(ctx context.Context, machine remote.Place, server remote.Server) (*Session, error) {
	address, err := c.resolve(ctx, machine.Host)
	if err != nil {
		return nil, err
	}
	control := netip.AddrPortFrom(address, machine.Port)
	conn, err := connect(ctx, control)
	if err != nil {
		return nil, err
	}
	reader := bufio.NewReaderSize(conn, longestLine)
	var hello answer
	if err = c.authenticate(ctx, conn, reader, server); err == nil {
		hello, err = c.ask(ctx, conn, reader)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &Session{
		About:  About{Control: control, Same: hello.Machine == c.Machine, Facts: hello.About},
		Server: netip.AddrPortFrom(address, server.Port(machine.Port)), name: server, conn: conn, ended: make(chan struct{}),
	}
	if local, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		s.Local = local.AddrPort().Addr().Unmap()
	}
	if server != "" {
		go s.follow(reader)
	}
	return s, nil
}

// resolve returns the address of a host, which is not this machine's.
func (c Client) resolve(ctx context.Context, host string) (netip.Addr, error) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		ctx, cancel := context.WithTimeoutCause(ctx, connectLimit, errLate)
		defer cancel()
		found, err := c.Lookup(ctx, host)
		if err == nil && len(found) == 0 {
			err = errors.New("it has no IPv4 address")
		}
		if err != nil {
			return netip.Addr{}, fmt.Errorf("find its address: %w; correct the name, or write the IPv4 address", err)
		}
		address = found[0].Unmap()
		if err := remote.Check(address); err != nil {
			return netip.Addr{}, fmt.Errorf("the address of %s: %w", host, err)
		}
	}
	local, err := c.Local(address)
	if err == nil && local {
		err = fmt.Errorf("%s is an address of this machine", address)
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w; name another machine, or measure on this one with peer=host or peer=containers", err)
	}
	return address, nil
}

// connect connects to touchstone peer.
func connect(ctx context.Context, control netip.AddrPort) (*net.TCPConn, error) {
	limitCtx, cancel := context.WithTimeoutCause(ctx, connectLimit, errLate)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(limitCtx, "tcp4", control.String())
	switch {
	case err == nil:
		return conn.(*net.TCPConn), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("connection refused: nothing listens at %s: run touchstone peer --listen %[1]s on that machine", control)
	case limitCtx.Err() != nil, isTimeout(err):
		return nil, fmt.Errorf("no answer within %v: the machine is down, or a firewall drops packets to its TCP ports %d to %d",
			connectLimit, control.Port(), control.Port()+remote.Ports-1)
	default:
		return nil, fmt.Errorf("%w; check the address and the route", err)
	}
}

// isTimeout reports whether a connection was not established in time. The dialer's own deadline may end just before its context.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// ask sends requests, and reads one answer.
func (c Client) ask(ctx context.Context, conn net.Conn, reader *bufio.Reader, requests ...request) (answer, error) {
	var hello answer
	err := within(ctx, conn, answerLimit, func() error {
		for _, r := range requests {
			if err := send(conn, r); err != nil {
				return err
			}
		}
		return receive(reader, &hello)
	})
	if err == nil && hello.Version == "" {
		err = fmt.Errorf("%w: it has no version", errForeign)
	}
	const stranger = "the program there is not touchstone peer"
	const advice = "name the address and the port that touchstone peer prints"
	switch {
	case errors.Is(err, errForeign):
		return answer{}, fmt.Errorf("%s (%w); %s", stranger, err, advice)
	case errors.Is(err, errLate):
		return answer{}, fmt.Errorf("%s, or it hangs: it accepts connections and sends no answer within %v; %s", stranger, answerLimit, advice)
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return answer{}, fmt.Errorf("%s, has too many clients or was just stopped: it closed the connection without an answer; %s", stranger, advice)
	case err != nil:
		return answer{}, err
	case hello.Error != "":
		return answer{}, fmt.Errorf("touchstone peer there reports: %s", clean(hello.Error))
	case hello.Version != c.Version:
		return answer{}, fmt.Errorf("touchstone there is %s, and this is %s: install one version on both machines", clean(hello.Version), c.Version)
	}
	return hello, nil
}

// clean makes text of the other side fit for one line of an error.
func clean(text string) string {
	printable := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}
	return strings.Map(printable, strings.ToValidUTF8(text[:min(len(text), longestText)], "\uFFFD"))
}

// follow waits for the end of the connection.
func (s *Session) follow(reader *bufio.Reader) {
	var last answer
	err := receive(reader, &last)
	switch {
	case err == nil && last.Error != "":
		err = fmt.Errorf("%s on the other machine failed: %s", s.name, clean(last.Error))
	case errors.Is(err, errForeign), err == nil:
		err = fmt.Errorf("%s on the other machine: unexpected answer of touchstone peer", s.name)
	default:
		err = fmt.Errorf("%s on the other machine: the connection to touchstone peer is lost (%w): it was killed, or the machine or the network is down", s.name, err)
	}
	s.mu.Lock()
	if s.closed && last.Error == "" {
		err = nil
	}
	s.err = err
	s.mu.Unlock()
	close(s.ended)
}

// Watch returns a context that is cancelled if the server fails or the connection is lost before Close. The cause is the reason.
func (s *Session) Watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.ended:
			s.mu.Lock()
			err := s.err
			s.mu.Unlock()
			if err != nil {
				cancel(err)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Close returns when the other machine has ended the server. It reports a failure to do so, and is not called twice.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.conn.CloseWrite() // a lost connection has ended already
	err := within(context.Background(), s.conn, closeLimit, func() error {
		<-s.ended
		return s.err
	})
	_ = s.conn.Close()
	if err != nil {
		return fmt.Errorf("end the server on another machine: %w", err)
	}
	return nil
}
