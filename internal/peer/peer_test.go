package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// served is an imitated server.
type served struct {
	server remote.Server
	at     netip.AddrPort
	exit   chan error
	stops  error
	gone   chan struct{}
}

func (p *served) Wait(ctx context.Context) error {
	select {
	case err := <-p.exit:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *served) Stop() error {
	close(p.gone)
	return p.stops
}

// machine is a Server on the loopback interface, and a client for it.
type machine struct {
	*Server
	Client
	at    remote.Place
	stop  context.CancelFunc
	ended chan error

	mu       sync.Mutex
	started  []*served
	messages []string
	fails    error // of Start
	stops    error // of Stop
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.Do(t, err)
	m := &machine{ended: make(chan error, 1)}
	m.Server = &Server{
		Version: "v1", Secret: testSecret, Machine: "there", About: map[string]string{AboutMachine: "Linux"},
		Start: func(_ context.Context, server remote.Server, addr netip.AddrPort) (Process, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.fails != nil {
				return nil, m.fails
			}
			p := &served{server: server, at: addr, exit: make(chan error, 1), stops: m.stops, gone: make(chan struct{})}
			m.started = append(m.started, p)
			return p, nil
		},
		Report: func(message string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.messages = append(m.messages, message)
		},
	}
	m.Client = client("v1")
	m.at = remote.Place{Host: "127.0.0.1", Port: netip.MustParseAddrPort(l.Addr().String()).Port()}
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	go func() { m.ended <- m.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		must.Do(t, <-m.ended)
	})
	return m
}

var testSecret = secretOf("a-secret-of-the-tests")

// client returns a client that takes no address for its own.
func client(version string) Client {
	return Client{
		Version: version, Secret: testSecret, Machine: "here", Local: func(netip.Addr) (bool, error) { return false, nil },
		Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") },
	}
}

// Each session has a server of its own, which ends with the session.
//
// Invariant server-session: A server on another machine is this version's, serves one client, and ends with it, also if the client is killed.
func TestSessions(t *testing.T) {
	m := newMachine(t)
	for i, server := range remote.Servers() {
		s, err := m.Open(t.Context(), m.at, server)
		must.Do(t, err)
		p := m.started[i]
		if p.server != server || p.at != s.Server || s.Server.Port() != server.Port(m.at.Port) || s.Control.Port() != m.at.Port {
			t.Errorf("%s was started as %s at %s, and the session has %s and %s", server, p.server, p.at, s.Server, s.Control)
		}
		if s.Same || s.Facts[AboutMachine] != "Linux" || s.Local.String() != "127.0.0.1" {
			t.Errorf("the machine is described by %+v", s.About)
		}
		if server == remote.Iperf {
			p.exit <- nil // after its client
		}
		ctx, stop := s.Watch(t.Context())
		must.Do(t, s.Close())
		<-p.gone
		if err := ctx.Err(); err != nil {
			t.Errorf("after an ordinary end the context has %v", context.Cause(ctx))
		}
		stop()
	}
	if len(m.messages) != 1 || !strings.Contains(m.messages[0], "127.0.0.1") {
		t.Errorf("the messages are %q", m.messages)
	}
}

// A check starts no server. Connections without a request disturb nothing.
func TestCheck(t *testing.T) {
	m := newMachine(t)
	conn, err := net.Dial("tcp4", m.at.String())
	must.Do(t, err)
	_ = conn.Close()
	info, err := m.Check(t.Context(), m.at)
	if err != nil || info.Same || len(m.started) > 0 {
		t.Errorf("Check() = %+v, %v, and %d servers were started", info, err, len(m.started))
	}
	m.Client.Machine = "there"
	if info, err = m.Check(t.Context(), m.at); err != nil || !info.Same {
		t.Errorf("the same kernel gives %+v, %v", info, err)
	}
}

// A second client is refused, until the first one has ended its session.
//
// Invariant server-session.
func TestOneClientAtATime(t *testing.T) {
	m := newMachine(t)
	s, err := m.Open(t.Context(), m.at, remote.Nginx)
	must.Do(t, err)
	for _, server := range []remote.Server{remote.Iperf, ""} {
		if _, err := m.Open(t.Context(), m.at, server); err == nil || !strings.Contains(err.Error(), "busy with a trial of 127.0.0.1") {
			t.Errorf("a second client for %q gets %v", server, err)
		}
	}
	must.Do(t, s.Close())
	for range 20 { // the next session never meets the end of the last one
		s, err := m.Open(t.Context(), m.at, remote.Netserver)
		must.Do(t, err)
		must.Do(t, s.Close())
	}
}

// A lost client ends its session.
//
// Invariant server-session.
func TestLostClient(t *testing.T) {
	m := newMachine(t)
	s, err := m.Open(t.Context(), m.at, remote.Nginx)
	must.Do(t, err)
	_ = s.conn.SetLinger(0) // a reset, as from a killed program
	_ = s.conn.Close()
	<-m.started[0].gone
}

// The failure of a server reaches the client with its reason, and so does the end of touchstone peer.
func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(*machine)
		want    string
	}{
		"exit": {func(m *machine) { m.started[0].exit <- errors.New("exit code 1: address in use") }, "nginx on the other machine failed: the server: exit code 1: address in use"},
		"stop": {func(m *machine) { m.stop() }, "touchstone peer was stopped there"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			s, err := m.Open(t.Context(), m.at, remote.Nginx)
			must.Do(t, err)
			ctx, stop := s.Watch(t.Context())
			defer stop()
			tt.happens(m)
			<-ctx.Done()
			if got := context.Cause(ctx).Error(); !strings.Contains(got, tt.want) {
				t.Errorf("the context ends with %q, want %q", got, tt.want)
			}
			if err := s.Close(); !errors.Is(err, context.Cause(ctx)) {
				t.Errorf("Close() = %v", err)
			}
			<-m.started[0].gone
		})
	}
}

// A server that is not removed is an error of the session.
func TestServerStays(t *testing.T) {
	m := newMachine(t)
	m.stops = errors.New("a process stays")
	s, err := m.Open(t.Context(), m.at, remote.Nginx)
	must.Do(t, err)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "a process stays") {
		t.Errorf("Close() = %v", err)
	}
}

// speak answers the first connection with a text, or closes it.
func speak(t *testing.T, text string) remote.Place {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 100))
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	return remote.Place{Host: "127.0.0.1", Port: netip.MustParseAddrPort(l.Addr().String()).Port()}
}

// closedPort returns a port at which nothing listens to the end of the test.
func closedPort(t *testing.T) uint16 {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.Do(t, err)
	t.Cleanup(func() { _ = unix.Close(socket) })
	must.Do(t, unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := unix.Getsockname(socket)
	must.Do(t, err)
	return uint16(address.(*unix.SockaddrInet4).Port)
}

// Each error names the place, the reason and the remedy.
//
// Invariant server-session.
// Invariant another-machine: An address of this machine is never taken for another machine; another network namespace is in the record.
func TestErrors(t *testing.T) {
	m := newMachine(t)
	failing := newMachine(t)
	failing.fails = errors.New("address\x1b in use")
	resolver := client("v1")
	resolver.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(map[string]string{"own.example": "192.0.2.7", "loop.example": "127.0.0.1"}[host])}, nil
	}
	resolver.Local = func(a netip.Addr) (bool, error) { return a.String() == "192.0.2.7", nil }
	for name, tt := range map[string]struct {
		client Client
		at     remote.Place
		want   []string
	}{
		"refused":          {client("v1"), remote.Place{Host: "127.0.0.1", Port: closedPort(t)}, []string{"connection refused", "run touchstone peer --listen 127.0.0.1:"}},
		"unknown name":     {client("v1"), remote.Place{Host: "bench2.example", Port: 7480}, []string{"bench2.example", "no such host", "correct the name"}},
		"this machine":     {resolver, remote.Place{Host: "own.example", Port: 7480}, []string{"192.0.2.7 is an address of this machine", "peer=host"}},
		"loopback":         {resolver, remote.Place{Host: "loop.example", Port: 7480}, []string{"loop.example", "loopback"}},
		"another version":  {client("v2"), m.at, []string{"this is touchstone v1, and the client is v2", "install one version"}},
		"another program":  {client("v1"), speak(t, "SSH-2.0-OpenSSH_9.2\r\n"), []string{"not touchstone peer", "SSH-2.0"}},
		"other JSON":       {client("v1"), speak(t, "{\"error\":\"\"}\n"), []string{"not touchstone peer"}},
		"a long line":      {client("v1"), speak(t, strings.Repeat("x", 2*longestLine)), []string{"not touchstone peer"}},
		"a closed door":    {client("v1"), speak(t, ""), []string{"not touchstone peer", "closed the connection"}},
		"half a line":      {client("v1"), speak(t, `{"touchstone":"v1"`), []string{"not touchstone peer"}},
		"a failed program": {client("v1"), failing.at, []string{"touchstone peer there reports: address", "in use"}},
	} {
		_, err := tt.client.Open(t.Context(), tt.at, remote.Iperf)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range append(tt.want, tt.at.String()) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error %q lacks %q", name, err, want)
			}
		}
		if strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: the error %q has control characters", name, err)
		}
	}
}

// A machine that is silent exceeds the caller's limit.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	errOver := errors.New("the trial is over")
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 10))
		cancel(errOver)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}()
	_, err = client("v1").Open(ctx, remote.Place{Host: "127.0.0.1", Port: netip.MustParseAddrPort(l.Addr().String()).Port()}, remote.Iperf)
	if !errors.Is(err, errOver) {
		t.Errorf("Open() = %v", err)
	}
}

// Requests of other programs are refused, and stop nothing.
func TestForeignRequests(t *testing.T) {
	m := newMachine(t)
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": "the request is not",
		"\n":                     "the request is not",
		strings.Repeat("x", 2*longestLine) + "\n":     "the request is not",
		`{"touchstone":"v1","server":"redis"}` + "\n": "the request is not",
		`{"server":"iperf3"}` + "\n":                  "install one version",
	} {
		conn, err := net.Dial("tcp4", m.at.String())
		must.Do(t, err)
		_, _ = io.WriteString(conn, text)
		got, _ := io.ReadAll(conn) // a reset may follow the answer to a long line
		if !strings.Contains(string(got), want) && len(text) < longestLine {
			t.Errorf("the answer to %.40q is %q, want %q", text, got, want)
		}
		_ = conn.Close()
	}
	if _, err := m.Check(t.Context(), m.at); err != nil || len(m.started) > 0 {
		t.Errorf("Check() = %v after %d servers", err, len(m.started))
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:7480":      "not the address of one machine",
		"127.0.0.1:7480":    "loopback",
		"[::]:7480":         "not an IPv4 address",
		"203.0.113.77:7480": "not an address of this machine",
	} {
		l, err := Listen(t.Context(), netip.MustParseAddrPort(address))
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listen(%s) = %v, want %q", address, err, want)
		}
	}
	addrs, err := Own()
	if err != nil || !slices.Contains(addrs, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("Own() = %v, %v", addrs, err)
	}
}
