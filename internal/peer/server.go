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
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// Process is a server that was started for a session.
type Process interface {
	// Wait returns when the process has exited, or ctx has ended. The error is nil after exit code 0.
	Wait(ctx context.Context) error
	// Stop kills the process if it still runs, and removes everything that belongs to it.
	Stop() error
}

// Server serves clients on other machines.
type Server struct {
	// Version is Touchstone's. Only clients with the same Secret are served.
	Version string
	Secret  Secret
	// Machine is the result of Machine, and About describes this machine.
	Machine string
	About   map[string]string
	// Start starts a server at an address, and returns when it listens.
	Start func(ctx context.Context, server remote.Server, addr netip.AddrPort) (Process, error)
	// Report receives messages for the user. Several goroutines may call it.
	Report func(message string)

	mu      sync.Mutex
	serving netip.Addr // the client of the session under way
	known   []netip.Addr
	refused []netip.Addr       // strangers that were reported
	waiting map[netip.Addr]int // connections before the end of their handshake
}

// past ends a read at once.
var past = time.Unix(1, 0)

// Limits for clients that have not proved the secret. Further connections are closed.
const (
	mostWaiting     = 64
	mostWaitingFrom = 8  // of one address, so that one machine cannot keep out the others
	mostRefused     = 16 // reported addresses
)

// Serve serves the clients of a listener until ctx ends, closes it, and ends the session under way.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("accept a client: %w", err), l.Close())
		}
		peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err != nil {
			_ = conn.Close()
			continue
		}
		leave, ok := s.wait(peer.Addr())
		if !ok {
			_ = conn.Close()
			continue
		}
		clients.Go(func() {
			defer leave()
			s.client(ctx, conn, addr, peer.Addr(), leave)
		})
	}
}

// wait counts a connection until leave is called. It returns false if too many wait.
func (s *Server) wait(peer netip.Addr) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.waiting {
		total += n
	}
	if total >= mostWaiting || s.waiting[peer] >= mostWaitingFrom {
		return nil, false
	}
	if s.waiting == nil {
		s.waiting = map[netip.Addr]int{}
	}
	s.waiting[peer]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[peer]--; s.waiting[peer] == 0 {
			delete(s.waiting, peer)
		}
	}), true
}

// client serves one connection, and closes it after the end of its session. It calls notify after the handshake.
func (s *Server) client(ctx context.Context, conn net.Conn, addr netip.AddrPort, peer netip.Addr, notify func()) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReaderSize(conn, longestRequest)
	var server remote.Server
	err := within(ctx, conn, handshakeLimit, func() (err error) {
		server, err = s.admit(conn, reader)
		return err
	})
	var refusal refusalError
	switch {
	case errors.Is(err, errForeign):
		s.refuse(ctx, conn, errors.New("this is touchstone peer, and the request is not"))
		return
	case errors.As(err, &refusal):
		s.tell(peer, refusal)
		s.refuse(ctx, conn, refusal)
		return
	case err != nil: // silent, or closed without a request: a container tests whether it reaches this machine
		return
	}
	notify()
	if err := s.take(server, peer); err != nil {
		s.refuse(ctx, conn, err)
		return
	}
	if server == "" {
		_ = s.answer(ctx, conn, s.hello()) // the client reports the failure
		return
	}
	defer s.release()
	if err := s.session(ctx, conn, reader, server, addr, peer); err != nil {
		s.Report(fmt.Sprintf("%s for %s: %v", server, peer, err))
		s.refuse(ctx, conn, err)
	}
}

// tell reports a refused client once, and no more than some clients.
func (s *Server) tell(client netip.Addr, reason error) {
	s.mu.Lock()
	isQuiet := len(s.refused) == mostRefused || slices.Contains(s.refused, client)
	if !isQuiet {
		s.refused = append(s.refused, client)
	}
	s.mu.Unlock()
	if !isQuiet {
		s.Report(fmt.Sprintf("refused %s: %s", client, clean(reason.Error())))
	}
}

// take begins a session for a client. A check begins none, and fails during a session.
func (s *Server) take(server remote.Server, client netip.Addr) error {
	if server != "" && !slices.Contains(remote.Servers(), server) {
		return fmt.Errorf("it has no server %.50q", server)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving.IsValid() {
		return fmt.Errorf("it is busy with a trial of %s, and serves one client at a time: wait for its end, or run touchstone peer on another machine", s.serving)
	}
	if server == "" {
		return nil
	}
	s.serving = client
	return nil
}

// greet reports a client once.
func (s *Server) greet(client netip.Addr) {
	s.mu.Lock()
	isKnown := slices.Contains(s.known, client)
	if !isKnown {
		s.known = append(s.known, client)
	}
	s.mu.Unlock()
	if !isKnown {
		s.Report(fmt.Sprintf("serves %s", client))
	}
}

func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = netip.Addr{}
}

func (s *Server) hello() answer {
	return answer{Version: s.Version, Machine: s.Machine, About: s.About}
}

// session starts a server, and ends it when the client closes the connection.
func (s *Server) session(ctx context.Context, conn net.Conn, reader io.Reader, server remote.Server, addr netip.AddrPort, client netip.Addr) (err error) {
	process, err := s.Start(ctx, server, netip.AddrPortFrom(addr.Addr(), server.Port(addr.Port())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := s.answer(ctx, conn, s.hello()); err != nil {
		return err
	}
	s.greet(client)
	// Both goroutines end: the first with the connection, and the second with its context.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(past) })
	defer stop()
	left, exits := make(chan struct{}), make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, reader) // a client sends nothing more
		close(left)
	}()
	go func() { exits <- process.Wait(ctx) }()
	select {
	case <-left:
	case err = <-exits:
		if err == nil {
			<-left // iperf3 exits before its client
		}
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("touchstone peer was stopped there")
	case err != nil:
		return fmt.Errorf("the server: %w", err)
	}
	return nil
}

// answer sends a line, in time. A stop of the server does not break the connection meanwhile, because its reason is the next answer.
func (s *Server) answer(ctx context.Context, conn net.Conn, a answer) error {
	return within(context.WithoutCancel(ctx), conn, handshakeLimit, func() error { return send(conn, a) })
}

// refuse sends an error. A client that has closed the connection does not receive it.
func (s *Server) refuse(ctx context.Context, conn net.Conn, err error) {
	text := err.Error()
	_ = s.answer(ctx, conn, answer{Version: s.Version, Error: text[:min(len(text), longestText)]})
}
