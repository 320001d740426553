package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/ports"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// bare imitates bare metal. A program runs until it is deleted, or exits at once.
type bare struct {
	// exits are the exits of programs that exit at once, and output their output, both by a part of their arguments.
	exits  map[string]engine.Exit
	output map[string]string

	mu    sync.Mutex
	specs []engine.Spec
	open  int
}

func (*bare) Info() engine.Info                { return engine.Info{} }
func (*bare) Supports(engine.Capability) error { return nil }
func (*bare) Close() error                     { return nil }

func (e *bare) Create(_ context.Context, s engine.Spec) (engine.Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.specs = append(e.specs, s)
	e.open++
	return &bareProcess{e: e, spec: s, ended: make(chan struct{})}, nil
}

// processes returns the number of processes that exist. A server deletes them in a goroutine of its own.
func (e *bare) processes() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

type bareProcess struct {
	e     *bare
	spec  engine.Spec
	exit  engine.Exit
	once  sync.Once
	ended chan struct{}
}

func (c *bareProcess) ID() string                                { return c.spec.ID }
func (*bareProcess) State(context.Context) (engine.State, error) { return engine.Running, nil }
func (*bareProcess) Kill(context.Context, syscall.Signal) error  { return nil }
func (c *bareProcess) end(exit engine.Exit)                      { c.once.Do(func() { c.exit = exit; close(c.ended) }) }

func (c *bareProcess) Start(context.Context) error {
	args := strings.Join(c.spec.Process.Args, " ")
	for part, text := range c.e.output {
		if strings.Contains(args, part) {
			_, _ = io.WriteString(c.spec.Process.Stdout, text)
		}
	}
	for part, exit := range c.e.exits {
		if strings.Contains(args, part) {
			c.end(exit)
		}
	}
	return nil
}

func (c *bareProcess) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-c.ended:
		return c.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, context.Cause(ctx)
	}
}

func (c *bareProcess) Delete(context.Context) error {
	c.end(engine.Exit{Signal: syscall.SIGKILL})
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.open--
	return nil
}

func newTestServer(t *testing.T, host *bare) *Server {
	t.Helper()
	return &Server{
		ServerConfig: ServerConfig{RunID: "20260101-000000-aaaa", Listen: ports.Free(t, remote.Ports)},
		host:         host, rootfs: "/image", web: filepath.Join(t.TempDir(), "web"),
	}
}

// reached are the exits of a host whose servers listen.
func reached() map[string]engine.Exit { return map[string]engine.Exit{"/probe reach": {}} }

// Servers run in the host's network, from the image, and listen before their client is answered.
func TestServerStarts(t *testing.T) {
	for _, server := range remote.Servers() {
		host := &bare{exits: reached(), output: map[string]string{"iperf3": programs.IperfListening + "----\n"}}
		s := newTestServer(t, host)
		p, err := s.start(t.Context(), server, s.at(server))
		must.Do(t, err)
		if host.processes() != 1 {
			t.Errorf("%s: %d processes exist", server, host.processes())
		}
		spec := host.specs[0]
		if spec.Network != engine.HostNet || spec.Join != "" || spec.Rootfs != "/image" || !strings.HasPrefix(spec.ID, engine.Prefix+s.RunID+"-") {
			t.Errorf("%s is %+v", server, spec)
		}
		if server == remote.Nginx {
			config, err := os.ReadFile(filepath.Join(spec.Mounts[1].Source, programs.NginxConfig))
			if err != nil || !strings.Contains(string(config), "listen "+s.at(server).String()+";") {
				t.Errorf("nginx is configured by %s, %v", config, err)
			}
		}
		if reaches := len(host.specs) == 2 && slices.Contains(host.specs[1].Process.Args, "reach"); reaches != (server.Listening() == "") {
			t.Errorf("%s: the programs are %+v", server, host.specs)
		}
		if err := p.Stop(); err != nil || host.processes() != 0 {
			t.Errorf("%s: Stop() = %v, and %d processes exist", server, err, host.processes())
		}
	}
}

// A server that cannot listen is an error with its output, and leaves no process.
func TestServerFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		which remote.Server
		host  *bare
		want  string
	}{
		{"exit", remote.Iperf, &bare{exits: map[string]engine.Exit{"iperf3": {Code: 1}}, output: map[string]string{"iperf3": "iperf3: error -\n unable"}}, "iperf3 ended: exit code 1: iperf3: error - unable"},
		{"exit with 0", remote.Iperf, &bare{exits: map[string]engine.Exit{"iperf3": {}}}, "iperf3 exited before it had a client"},
		{"exit while it is reached", remote.Nginx, &bare{exits: map[string]engine.Exit{"nginx": {Code: 1}}}, "nginx ended: exit code 1"},
		{"not reached", remote.Netserver, &bare{exits: map[string]engine.Exit{"/probe reach": {Code: 1}}}, "exit code 1"},
	} {
		s := newTestServer(t, tt.host)
		_, err := s.start(t.Context(), tt.which, s.at(tt.which))
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.host.processes() != 0 {
			t.Errorf("%s: start() = %v, and %d processes exist; want %q", tt.name, err, tt.host.processes(), tt.want)
		}
	}
	host := &bare{}
	s := newTestServer(t, host)
	l, err := net.Listen("tcp4", s.at(remote.Nginx).String())
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	if _, err := s.start(t.Context(), remote.Nginx, s.at(remote.Nginx)); err == nil || !strings.Contains(err.Error(), "in use; name a port that is free") || len(host.specs) > 0 {
		t.Errorf("at a port of another program: start() = %v after %+v", err, host.specs)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if _, err := newTestServer(t, &bare{}).start(ctx, remote.Iperf, s.at(remote.Iperf)); err == nil {
		t.Error("a stopped server starts programs")
	}
}

// The end of a server's output is kept, and a line in several pieces is found.
func TestServerOutput(t *testing.T) {
	o := newServerOutput("-----")
	for _, part := range []string{"--", "---", "----"} {
		if _, err := io.WriteString(o, part); err != nil {
			t.Fatal(err)
		}
		select {
		case <-o.listens:
			t.Errorf("after %q the line is found", part)
		default:
		}
	}
	_, _ = io.WriteString(o, "\nServer listening\n")
	<-o.listens
	for i := range 1000 {
		_, _ = fmt.Fprintf(o, "line %d\n", i)
	}
	if text := o.String(); !strings.HasSuffix(text, "line 998 line 999") || len(text) > keptOutput || cap(o.text) > 8*keptOutput {
		t.Errorf("the output is %q, in %d bytes", text, cap(o.text))
	}
}

// All machines of a plan are checked, each once, and a plan without one connects to none.
func TestFindRemotes(t *testing.T) {
	var reports []string
	report := func(_ EventKind, text string) { reports = append(reports, text) }
	work := func(peers ...string) (list []plan.Work) {
		for _, p := range peers {
			list = append(list, plan.Work{Params: bench.Params{"peer": p}})
		}
		return append(list, plan.Work{Params: bench.Params{"duration": "1s"}})
	}
	r, err := findRemotes(t.Context(), work("host", "containers", "same"), "v1", peer.Secret{}, report)
	if err != nil || r.caveats != nil || reports != nil {
		t.Errorf("without another machine: %v, %q, %q", err, r.caveats, reports)
	}
	_, err = findRemotes(t.Context(), work("touchstone-a.invalid", "touchstone-b.invalid:9000", "touchstone-a.invalid"), "v1", peer.Secret{}, report)
	if err == nil || strings.Count(err.Error(), "use the server on another machine, touchstone-a.invalid:") != 1 || strings.Count(err.Error(), "touchstone-b.invalid:9000:") != 1 {
		t.Errorf("two unknown machines: %v", err)
	}
}

func TestDescribeInterface(t *testing.T) {
	if facts := describeInterface(netip.MustParseAddr("127.0.0.1")); facts["interface"] != "lo" || facts["mtu"] == "" {
		t.Errorf("the loopback interface is described by %v", facts)
	}
	if facts := describeInterface(netip.MustParseAddr("203.0.113.77")); !strings.HasPrefix(facts["interface"], "not known: ") {
		t.Errorf("an interface that does not exist is described by %v", facts)
	}
	if text := inOneLine(map[string]string{"mtu": "1500", "interface": "eth0", "kind": "e1000e"}); text != "eth0, kind e1000e, mtu 1500" {
		t.Errorf("in one line: %q", text)
	}
	if text := describeMachine(); !strings.HasPrefix(text, "Linux ") || strings.Contains(text, "  ") {
		t.Errorf("this machine is %q", text)
	}
}

// A session ends with its server, also through the adapter for trials.
func TestRemoteServer(t *testing.T) {
	host := &bare{exits: reached()}
	s := newTestServer(t, host)
	l, err := net.Listen("tcp4", s.Listen.String())
	must.Do(t, err)
	secret := peer.NewSecret()
	server := &peer.Server{Version: "v1", Secret: secret, Machine: "there", Start: s.start, About: map[string]string{peer.AboutMachine: "Linux", "other": "x"}, Report: func(string) {}}
	ctx, stop := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() { outcome <- server.Serve(ctx, l) }()
	r := remotes{client: peer.Client{Version: "v1", Secret: secret, Machine: "there", Local: func(netip.Addr) (bool, error) { return false, nil }}}
	client, err := r.open(t.Context(), remote.Place{Host: "127.0.0.1", Port: s.Listen.Port()}, remote.Nginx)
	must.Do(t, err)
	if client.Server() != s.at(remote.Nginx) || client.Control() != s.Listen {
		t.Errorf("the server is at %s and %s", client.Server(), client.Control())
	}
	facts := client.About()
	if facts["interface"] != "lo" || facts["server's machine"] != "Linux" || facts["server"] != "this machine, in another network namespace" || facts["server's other"] != "" {
		t.Errorf("the conditions are %v", facts)
	}
	if err := client.Close(); err != nil || host.processes() != 0 {
		t.Errorf("Close() = %v, and %d processes exist", err, host.processes())
	}
	stop()
	must.Do(t, <-outcome)
}
