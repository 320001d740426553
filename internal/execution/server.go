package execution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// ServerConfig describes a Server.
type ServerConfig struct {
	// RunID names the directories, cgroups and processes of the server on this machine.
	RunID   string
	Version string
	// Secret is the clients' too.
	Secret peer.Secret
	// Listen is an address of this machine, with the first of remote.Ports ports.
	Listen netip.AddrPort
	// Report receives events, and Ready is called when clients are served. Several goroutines may call Report.
	Report func(Event)
	Ready  func()
}

// Server runs the servers of network benchmarks for runs on another machine. They come from the same image as programs at the host's end of
// a network, and run as processes in cgroups of their own. Clients control them, so they are unprivileged.
type Server struct {
	ServerConfig
	session *Session

	host   engine.Engine
	rootfs string
	web    string       // the directory with nginx's files on the host
	number atomic.Int64 // of the last process
}

// NewServer touches nothing on the host.
func NewServer(c ServerConfig) *Server {
	return &Server{ServerConfig: c, session: NewSession(c.RunID, plan.Quick())}
}

// Abandon removes at once all resources of the server on the host. The program must end right after.
func (s *Server) Abandon() error { return s.session.Abandon() }

// Run serves until ctx ends, and removes everything.
func (s *Server) Run(ctx context.Context) (err error) {
	report := func(kind EventKind, text string) { s.Report(Event{kind, text}) }
	if err := s.canListen(ctx); err != nil {
		return err
	}
	leftovers, err := s.session.Open(ctx, func(reason string) { report(Note, reason) })
	for _, left := range leftovers {
		report(Swept, left.String())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.session.Close()) }()
	source, err := makeWorkload(ctx, s.session.Launcher, report)
	if err != nil {
		return err
	}
	digest, _, err := digestAndSize(source.Image)
	if err != nil {
		return err
	}
	s.rootfs, s.web = source.rootfs, filepath.Join(s.session.dir.Data, "web")
	if s.host, err = (native.Driver{Unprivileged: true}).Open(ctx, target.Target{Engine: target.Native}, s.session.Session); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.host.Close()) }()
	for _, note := range s.host.Info().Notes {
		report(Note, note)
	}
	machine, err := peer.Machine()
	if err != nil {
		return err
	}
	server := &peer.Server{
		Version: s.Version, Secret: s.Secret, Machine: machine, Start: s.start,
		About: map[string]string{
			peer.AboutMachine: describeMachine(), peer.AboutInterface: inOneLine(describeInterface(s.Listen.Addr())), peer.AboutImage: digest,
		},
		Report: func(message string) { report(Note, message) },
	}
	listener, err := peer.Listen(ctx, s.Listen)
	if err != nil {
		return err
	}
	s.Ready()
	return server.Serve(ctx, listener)
}

// canListen returns an error if the address or a port cannot be used, before the long preparations. It does not keep the ports: a client
// would wait for the end of the preparations.
func (s *Server) canListen(ctx context.Context) error {
	listener, err := peer.Listen(ctx, s.Listen)
	if err == nil {
		err = listener.Close()
	}
	for _, server := range remote.Servers() {
		if err == nil {
			err = s.free(ctx, server)
		}
	}
	return err
}

// inOneLine formats the description of an interface.
func inOneLine(facts map[string]string) string {
	parts := []string{facts["interface"]}
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		if key != "interface" {
			parts = append(parts, key+" "+facts[key])
		}
	}
	return strings.Join(parts, ", ")
}

// at is the address of a server.
func (s *Server) at(server remote.Server) netip.AddrPort {
	return netip.AddrPortFrom(s.Listen.Addr(), server.Port(s.Listen.Port()))
}

// free returns an error if another program uses the server's port. A client would measure that program.
func (s *Server) free(ctx context.Context, server remote.Server) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", s.at(server).String())
	if err != nil {
		return fmt.Errorf("%s: %w; name a port that is free, with the %d ports after it: --listen %s:PORT",
			server, err, remote.Ports-1, s.Listen.Addr())
	}
	return l.Close()
}

// Time limits of a server.
const (
	startLimit = 20 * time.Second
	stopLimit  = 10 * time.Second
)

// webFiles is the directory of nginx's files in its root file system.
const webFiles = "/data"

// start starts a server, and returns when it listens.
func (s *Server) start(ctx context.Context, server remote.Server, address netip.AddrPort) (_ peer.Process, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("%s did not listen within %v", server, startLimit))
	defer cancel()
	if err := s.free(ctx, server); err != nil {
		return nil, err
	}
	out := newServerOutput(server.Listening())
	spec := s.spec(server.Args(address, webFiles)...)
	spec.Process.Stdout, spec.Process.Stderr = out, out
	if server.Writes() {
		spec.Mounts = []engine.Mount{{Target: "/tmp"}}
	}
	if server == remote.Nginx {
		if err := s.writeWeb(address); err != nil {
			return nil, fmt.Errorf("write the web server's files: %w", err)
		}
		spec.Mounts = append(spec.Mounts, engine.Mount{Source: s.web, Target: webFiles, ReadOnly: true})
	}
	c, err := s.host.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	p := serverProcess{server: server, c: c, out: out}
	if err = c.Start(ctx); err == nil {
		err = s.awaitListening(ctx, p, address)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// spec describes a process of this machine.
func (s *Server) spec(argv ...string) engine.Spec {
	return engine.Spec{
		ID:     fmt.Sprintf("%s%s-peer-%05d", engine.Prefix, s.RunID, s.number.Add(1)),
		Rootfs: s.rootfs, Process: engine.Process{Args: argv}, Network: engine.HostNet,
	}
}

// writeWeb writes nginx's files. The user nobody reads them; on the host the directory above is private.
func (s *Server) writeWeb(address netip.AddrPort) error {
	err := errors.Join(os.MkdirAll(s.web, 0o755), os.Chmod(s.web, 0o755)) //nolint:gosec // see above
	for name, content := range programs.WebFiles(webFiles, address) {
		file := filepath.Join(s.web, name)
		err = errors.Join(err, os.WriteFile(file, content, 0o644), os.Chmod(file, 0o644)) //nolint:gosec // whatever the umask
	}
	return err
}

// awaitListening returns when a server listens, or with the reason why it has exited before.
func (s *Server) awaitListening(ctx context.Context, p serverProcess, address netip.AddrPort) error {
	ctx, cancel := context.WithCancelCause(ctx)
	end := make(chan struct{})
	go func() {
		defer close(end)
		err := p.Wait(ctx)
		if err == nil {
			err = fmt.Errorf("%s exited before it had a client: %s", p.server, p.out)
		}
		cancel(err)
	}()
	defer func() {
		cancel(nil)
		<-end
	}()
	var err error
	if p.server.Listening() == "" {
		err = s.reach(ctx, address)
	} else {
		select {
		case <-p.out.listens:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reach runs a program that connects to an address until it succeeds.
func (s *Server) reach(ctx context.Context, address netip.AddrPort) error {
	spec := s.spec(probe.Reach(address, startLimit)...)
	spec.Process.Stdout, spec.Process.Stderr = io.Discard, io.Discard
	c, err := s.host.Create(ctx, spec)
	if err != nil {
		return err
	}
	return errors.Join(engine.RunToExit(ctx, c, 0), engine.Undo(ctx, c))
}

// serverProcess implements peer.Process.
type serverProcess struct {
	server remote.Server
	c      engine.Container
	out    *serverOutput
}

func (p serverProcess) Wait(ctx context.Context) error {
	exit, err := p.c.Wait(ctx)
	if err == nil && !exit.OK() {
		err = fmt.Errorf("%s ended: %v: %s", p.server, exit, p.out)
	}
	return err
}

func (p serverProcess) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return p.c.Delete(ctx)
}

// serverOutput keeps the end of a server's output, and finds the line that it writes when it listens.
type serverOutput struct {
	listening string // the prefix of that line; empty if the server writes none
	listens   chan struct{}

	mu    sync.Mutex
	text  []byte
	found bool
}

// keptOutput is the number of bytes that is kept.
const keptOutput = 300

func newServerOutput(listening string) *serverOutput {
	return &serverOutput{listening: listening, listens: make(chan struct{})}
}

func (o *serverOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	if !o.found && o.listening != "" && bytes.HasPrefix(o.text, []byte(o.listening)) && bytes.ContainsRune(o.text, '\n') {
		o.found = true
		close(o.listens)
	}
	if o.found || len(o.text) > 2*keptOutput {
		o.text = bytes.Clone(o.text[max(0, len(o.text)-keptOutput):])
	}
	return len(b), nil
}

// String is the end of the output on one line.
func (o *serverOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(o.text[max(0, len(o.text)-keptOutput):]), "\uFFFD")), " ")
}
