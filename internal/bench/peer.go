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
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// The values of the parameter of Peer.
const (
	HostPeer      = "host"
	ContainerPeer = "containers"
	SamePeer      = "same" // only with PeerOrSame
)

// peer is the name of the parameter of Peer.
const peer = "peer"

// Peer is the parameter for the place of the clients, of benchmarks that call Serve.
func Peer(value string) Param {
	return Param{
		Name: peer, Quick: value, Paper: value, Check: OneOf(HostPeer, ContainerPeer),
		Help: "the client of the server in a container: a process at the host's end of the network, or another container of the target",
	}
}

// PeerOrSame is Peer for benchmarks that also call ServeWithin: it has the value SamePeer too.
func PeerOrSame(value string) Param {
	p := Peer(value)
	p.Check = OneOf(HostPeer, ContainerPeer, SamePeer)
	p.Help += ", or a further process of the same container"
	return p
}

// PeerOrRemote is Peer for benchmarks whose server can also be on another machine. The client is then in a container of the target.
// Server.Remote names their servers.
func PeerOrRemote(value string) Param {
	p := Peer(value)
	p.Help += "; or the server is on another machine, and the client in a container: the address of touchstone peer there, such as 192.0.2.7"
	p.Check = func(v string) error {
		if v == HostPeer || v == ContainerPeer {
			return nil
		}
		if _, err := remote.Parse(v); err != nil {
			return fmt.Errorf("must be %s, %s, or the address of another machine such as 192.0.2.7 or bench2.example:%d: %w", HostPeer, ContainerPeer, remote.Port, err)
		}
		return nil
	}
	p.Canonical = func(v string) string {
		if r, err := remote.Parse(v); err == nil {
			return r.String()
		}
		return v
	}
	return p
}

// RemotePeer returns the place of the server on another machine, and false if the parameter of PeerOrRemote selects none.
func RemotePeer(p Params) (remote.Place, bool) {
	r, err := remote.Parse(p[peer])
	return r, err == nil
}

// AtHost reports whether the clients of a benchmark with the parameter of Peer run at the host's end.
func AtHost(t Trial) bool { return t.Param(peer) == HostPeer }

// AsClient runs the program in the place that the parameter of Peer selects.
func AsClient(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	if AtHost(t) {
		return onHost(ctx, t, spec)
	}
	spec.Network = engine.Bridged
	if _, remote := RemotePeer(t.Params); remote {
		out, err := t.Network.Outward()
		if err != nil {
			return nil, err
		}
		spec.Network = out.Network
	}
	return InContainer(ctx, t, spec)
}

// FollowClient is Follow for a program in the place that the parameter of Peer selects.
func FollowClient(ctx context.Context, t Trial, spec engine.Spec, line func(text string, moment time.Duration)) (Followed, error) {
	if AtHost(t) {
		return FollowAtHost(ctx, t, spec, line)
	}
	spec.Network = engine.Bridged
	return Follow(ctx, t, spec, line)
}

// FollowAtHost is Follow for a program at the host's end of the target's Link.
func FollowAtHost(ctx context.Context, t Trial, spec engine.Spec, line func(text string, moment time.Duration)) (Followed, error) {
	return follow(ctx, t, spec, atHost, t.createAtHost, line)
}

// Ending is the way to end a server.
type Ending int

// The ways to end a server.
const (
	Terminated Ending = iota // SIGTERM makes it exit with code 0
	ByItself                 // it exits with code 0 after one client
	ByForce                  // it never exits and is deleted
)

// Server is a program that listens on an IPv4 TCP port of a container.
type Server struct {
	// Spec is the result of SpecOf or Core.Spec, with the mounts that the program needs.
	Spec engine.Spec
	Port uint16
	// Listening is the prefix of the first line that the program writes when it listens. If it is empty, Serve connects
	// until the server accepts; this does not work for a server that takes the first connection for its client.
	Listening string
	End       Ending
	// Remote is the same server on another machine, for benchmarks with the parameter of PeerOrRemote. There touchstone peer starts and
	// ends it.
	Remote remote.Server
}

// reachable is the deadline for a server to listen, far more than any server needs in the slowest sandbox.
const reachable = time.Minute

// Serve runs a server in a container of the target's bridged network, calls use with its address, and ends the server.
// The context of use is cancelled if the server fails. With a RemotePeer the server runs on that machine.
func Serve(ctx context.Context, t Trial, s Server, use func(ctx context.Context, addr netip.AddrPort) error) error {
	if machine, remote := RemotePeer(t.Params); remote {
		return s.elsewhere(ctx, t, machine, use)
	}
	if err := RecordPath(ctx, t); err != nil {
		return err
	}
	return s.run(ctx, t, func(ctx context.Context, r *Running) error {
		addr, err := s.Reached(ctx, t, r)
		if err != nil {
			return err
		}
		return use(ctx, addr)
	})
}

// reachableElsewhere is the deadline for a container to reach touchstone peer, which has answered this program before.
const reachableElsewhere = 10 * time.Second

// elsewhere is Serve for a server on another machine.
func (s Server) elsewhere(ctx context.Context, t Trial, machine remote.Place, use func(ctx context.Context, addr netip.AddrPort) error) (err error) {
	out, err := t.Network.Outward()
	if err != nil {
		return err
	}
	remote, err := t.Network.Remote(ctx, machine, s.Remote)
	if err != nil {
		return err
	}
	defer func() {
		if left := remote.Close(); !errors.Is(left, err) { // Close repeats the reason of a failure
			err = errors.Join(err, left)
		}
	}()
	t.Condition("client", "a container of the target")
	t.Condition("address family", "IPv4")
	t.Condition("network", out.About)
	facts := remote.About()
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		t.Condition(name, facts[name])
	}
	serving, stop := remote.Watch(ctx)
	defer stop()
	control := remote.Control()
	if _, err = AsClient(serving, t, t.Spec(probe.Reach(control, reachableElsewhere)...)); err != nil {
		err = fmt.Errorf("reach %s from a container of the target: %w; this machine itself reaches it: check the route and the firewall of containers", control, err)
	} else {
		err = use(serving, remote.Server())
	}
	if failed := context.Cause(serving); failed != nil && ctx.Err() == nil {
		return failed // the clients' errors follow from it
	}
	return err
}

// ServeWithin is Serve for clients that are further processes of the server's container. runner starts the clients. They
// reach the server at the loopback interface of the container. The target needs engine.CanExec. The container has the bridged
// network too, since a bare process without it would share the loopback interface of the host.
func ServeWithin(ctx context.Context, t Trial, s Server, use func(ctx context.Context, runner Where, addr netip.AddrPort) error) error {
	t.Condition("server", "a container of the target")
	t.Condition("client", "a further process of the server's container")
	t.Condition("address family", "IPv4")
	t.Condition("interface", "the loopback interface of the container")
	return s.run(ctx, t, func(ctx context.Context, r *Running) error {
		runner, addr := Within(r.Container), netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), s.Port)
		if err := s.reach(ctx, t, runner, addr); err != nil {
			return err
		}
		return use(ctx, runner, addr)
	})
}

// run runs the server, calls use while it runs, and ends it.
func (s Server) run(ctx context.Context, t Trial, use func(ctx context.Context, r *Running) error) error {
	s.Spec.Network = engine.Bridged
	s.Spec.Process.Stderr = t.Watch()
	r, err := Launch(ctx, t, s.Spec)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancelCause(ctx)
	exit := r.Await(serving)
	end := make(chan struct{})
	go func() {
		defer close(end)
		<-exit.Done
		if err := s.failure(exit); err != nil {
			stop(err)
		}
	}()
	defer func() {
		stop(nil)
		<-end
	}()
	err = use(serving, r)
	if cause := context.Cause(serving); cause != nil && ctx.Err() == nil {
		return cause // the clients' errors follow from it
	}
	if err != nil {
		return err
	}
	return s.end(ctx, t, r, exit)
}

// reach waits until the server accepts a connection from a place.
func (Server) reach(ctx context.Context, t Trial, runner Where, addr netip.AddrPort) error {
	if _, err := runner(ctx, t, t.Spec(probe.Reach(addr, reachable)...)); err != nil {
		return fmt.Errorf("reach the server at %s: %w", addr, err)
	}
	return nil
}

// Reached waits until a launched server can be reached, and returns its address.
func (s Server) Reached(ctx context.Context, t Trial, r *Running) (netip.AddrPort, error) {
	addressed, err := Optional[engine.Addressed](r.Container, engine.NetworkBridge)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var addr netip.Addr
	_, err = t.Time(ctx, "address", func(ctx context.Context) (err error) {
		addr, err = addressed.Address(ctx)
		return err
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	server := netip.AddrPortFrom(addr, s.Port)
	if s.Listening == "" {
		return server, s.reach(ctx, t, AsClient, server)
	}
	line, _, err := r.Output.FirstLine(ctx)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("wait for the server's first line: %w", err)
	}
	if !strings.HasPrefix(line, s.Listening) {
		return netip.AddrPort{}, fmt.Errorf("the server's first line is %.80q instead of %q", line, s.Listening)
	}
	return server, nil
}

// end ends a server that has no more clients.
func (s Server) end(ctx context.Context, t Trial, r *Running, exit *Exit) error {
	if s.End == Terminated {
		kill := func(ctx context.Context) error { return r.Kill(ctx, syscall.SIGTERM) }
		if _, err := t.Time(ctx, "kill", kill); err != nil {
			return err
		}
	}
	if s.End != ByForce {
		_, err := t.Time(ctx, "exit", func(ctx context.Context) error {
			select {
			case <-exit.Done:
				return s.failure(exit)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			return err
		}
	}
	_, err := t.Time(ctx, "delete", r.Delete)
	return err
}

// failure is the error of a server that has failed.
func (Server) failure(exit *Exit) error {
	if err := exit.Failure(); err != nil {
		return fmt.Errorf("the server: %w", err)
	}
	return nil
}

// RecordPath records the places of server and client, and the network between them.
func RecordPath(ctx context.Context, t Trial) error {
	link, err := t.Network.Link(ctx)
	if err != nil {
		return err
	}
	client := "another container of the target"
	if AtHost(t) {
		client = "a process at the host's end of the network"
	}
	t.Condition("server", "a container of the target")
	t.Condition("client", client)
	t.Condition("address family", "IPv4")
	for _, name := range slices.Sorted(maps.Keys(link.About)) {
		t.Condition(name, link.About[name])
	}
	return nil
}
