package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The values of Peer.
const (
	HostPeer      = "host"
	ContainerPeer = "containers"
)

// peer is the name of the parameter that Peer gives.
const peer = "peer"

// Peer is the parameter of benchmarks with Serve that says where their clients run.
func Peer(value string) Param {
	return Param{
		Name: peer, Quick: value, Paper: value, Check: OneOf(HostPeer, ContainerPeer),
		Help: "who asks the server in a container: the host's end of the network, or another container of the target",
	}
}

// AtHost tells whether the clients of a benchmark with the parameter Peer run at the host's end.
func AtHost(t Trial) bool { return t.Param(peer) == HostPeer }

// Ending is how a server ends.
type Ending int

// The ends of servers.
const (
	Terminated Ending = iota // by SIGTERM, with code 0
	ByItself                 // when it has served once, with code 0
	ByForce                  // it knows no end and is deleted
)

// Server is a program that listens on an IPv4 TCP port of a container.
type Server struct {
	// Spec is what SpecOf or Trial.Spec gives, with the mounts that the program needs.
	Spec engine.Spec
	Port uint16
	// Listening is how the first line begins that the program writes when it listens. Without one Serve knows it
	// from a connection that is accepted: not for a program that takes the first one for its client.
	Listening string
	End       Ending
}

// reachable is how long a server may take until it listens, far more than any needs in the slowest sandbox.
const reachable = time.Minute

// Serve runs a server in a Bridged container of the target while use works with it, and puts on record what is between the two.
// A server that ends badly is an error, whatever use makes of it, and ends the context of use.
func Serve(ctx context.Context, t Trial, s Server, use func(ctx context.Context, at netip.AddrPort) error) error {
	if err := recordPath(ctx, t); err != nil {
		return err
	}
	out, complaints := t.Watch(), t.Watch()
	s.Spec.Network = engine.Bridged
	s.Spec.Process.Stdout, s.Spec.Process.Stderr = out, complaints
	c, _, err := t.Create(ctx, s.Spec)
	if err != nil {
		return err
	}
	if _, err := t.Time(ctx, "start", c.Start); err != nil {
		return err
	}
	serving, stop := context.WithCancelCause(ctx)
	r := running{Server: s, container: c, ended: make(chan struct{})}
	go r.watch(serving, stop)
	defer func() {
		stop(nil)
		<-r.ended
	}()
	at, err := s.listening(serving, t, c, out)
	if err == nil {
		err = use(serving, at)
	}
	if early := context.Cause(serving); early != nil && ctx.Err() == nil {
		return early // what it broke says less
	}
	if err != nil {
		return err
	}
	return r.end(ctx, t)
}

// running is a server whose process runs.
type running struct {
	Server
	container engine.Container
	// ended is closed when the process has ended, after bad is set if it ended badly.
	ended chan struct{}
	bad   error
}

// watch waits for the end and stops those who need the server if that is a bad one.
func (r *running) watch(ctx context.Context, stop context.CancelCauseFunc) {
	defer close(r.ended)
	exit, err := r.container.Wait(ctx)
	if err == nil && !exit.OK() {
		err = fmt.Errorf("the server %q ended: %v", r.Spec.Process.Args, exit)
	}
	if err != nil {
		r.bad = err
		stop(err)
	}
}

// listening waits until the server can be reached, and says where.
func (s Server) listening(ctx context.Context, t Trial, c engine.Container, out Watch) (netip.AddrPort, error) {
	addressed, ok := c.(engine.Addressed)
	if !ok {
		return netip.AddrPort{}, errors.New("the engine says that it has bridged networks, and its containers have no address")
	}
	var addr netip.Addr
	_, err := t.Time(ctx, "address", func(ctx context.Context) (err error) {
		addr, err = addressed.Address(ctx)
		return err
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	at := netip.AddrPortFrom(addr, s.Port)
	if s.Listening == "" {
		if _, err := Client(ctx, t, t.Spec(workload.Reach(at, reachable)...)); err != nil {
			return netip.AddrPort{}, fmt.Errorf("reach the server at %s: %w", at, err)
		}
		return at, nil
	}
	line, _, err := out.FirstLine(ctx)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("wait for the server's first line: %w", err)
	}
	if !strings.HasPrefix(line, s.Listening) {
		return netip.AddrPort{}, fmt.Errorf("the server's first line is %.80q instead of %q", line, s.Listening)
	}
	return at, nil
}

// end ends a server whose clients are done.
func (r *running) end(ctx context.Context, t Trial) error {
	if r.End == Terminated {
		kill := func(ctx context.Context) error { return r.container.Kill(ctx, syscall.SIGTERM) }
		if _, err := t.Time(ctx, "kill", kill); err != nil {
			return err
		}
	}
	if r.End != ByForce {
		_, err := t.Time(ctx, "exit", func(ctx context.Context) error {
			select {
			case <-r.ended:
				return r.bad
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			return err
		}
	}
	_, err := t.Time(ctx, "delete", r.container.Delete)
	return err
}

// Client runs a program to its end where the benchmark's parameter Peer has the clients, and returns what it wrote on
// standard output.
func Client(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	if AtHost(t) {
		return HostProgram(ctx, t, spec)
	}
	spec.Network = engine.Bridged
	return Program(ctx, t, spec)
}

// MeasureClient is Client for a program whose output is read.
func MeasureClient(ctx context.Context, t Trial, p workload.Program) (workload.Values, error) {
	text, err := Client(ctx, t, SpecOf(t, p))
	if err != nil {
		return nil, err
	}
	return read(text, engine.Exit{}, p)
}

// recordPath puts on record who serves whom over what.
func recordPath(ctx context.Context, t Trial) error {
	link, err := t.Link(ctx)
	if err != nil {
		return err
	}
	t.Condition("server", "a container of the target")
	if AtHost(t) {
		t.Condition("client", "a process at the host's end of the network")
	} else {
		t.Condition("client", "another container of the target")
	}
	t.Condition("address family", "IPv4")
	for _, name := range slices.Sorted(maps.Keys(link.About)) {
		t.Condition(name, link.About[name])
	}
	return nil
}
