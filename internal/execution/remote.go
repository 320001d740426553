package execution

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// remotes are the other machines of a run, with servers of its network benchmarks.
type remotes struct {
	client  peer.Client
	caveats []string
}

// findRemotes checks that touchstone peer answers on each machine that the work names, before the first trial.
func findRemotes(ctx context.Context, work []plan.Work, version string, secret peer.Secret, report func(EventKind, string)) (remotes, error) {
	r := remotes{}
	var places []remote.Place
	for _, w := range work {
		if place, remote := bench.RemotePeer(w.Params); remote && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if places == nil {
		return r, nil
	}
	var err error
	if r.client, err = peer.NewClient(version, secret); err != nil {
		return r, err
	}
	var errs []error
	for _, place := range places {
		description, err := r.client.Check(ctx, place)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		note := fmt.Sprintf("the servers of peer=%s are on another machine (%s), whose load and CPU time are not recorded", place, description.Facts[peer.AboutMachine])
		if description.Same {
			note = fmt.Sprintf("the servers of peer=%s are on this machine, in another network namespace: this is no measurement between two machines", place)
		}
		report(Note, note)
		r.caveats = append(r.caveats, note)
	}
	return r, errors.Join(errs...)
}

// open starts a server on another machine for a trial.
func (r remotes) open(ctx context.Context, place remote.Place, server remote.Server) (bench.Remote, error) {
	s, err := r.client.Open(ctx, place, server)
	if err != nil {
		return nil, err
	}
	return remoteServer{s}, nil
}

// remoteServer implements bench.Remote.
type remoteServer struct{ session *peer.Session }

func (s remoteServer) Server() netip.AddrPort  { return s.session.Server }
func (s remoteServer) Control() netip.AddrPort { return s.session.Control }
func (s remoteServer) Close() error            { return s.session.Close() }

func (s remoteServer) Watch(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.session.Watch(ctx)
}

// About describes the other machine, and the interface of this one on the path to it.
func (s remoteServer) About() map[string]string {
	facts := describeInterface(s.session.Local)
	facts["server"] = "another machine" // the parameter has its address
	if s.session.Same {
		facts["server"] = "this machine, in another network namespace"
	}
	for _, key := range []string{peer.AboutMachine, peer.AboutInterface, peer.AboutImage} {
		if fact := s.session.Facts[key]; fact != "" {
			facts["server's "+key] = fact
		}
	}
	return facts
}

// describeInterface describes the interface with an address of this machine.
func describeInterface(a netip.Addr) map[string]string {
	name, err := interfaceWith(a)
	if err != nil {
		return map[string]string{"interface": err.Error()}
	}
	facts, err := network.Describe(name)
	if err != nil {
		return map[string]string{"interface": name}
	}
	return facts
}

// interfaceWith returns the name of the interface with an address.
func interfaceWith(a netip.Addr) (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("not known: %w", err)
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			continue // the interface has disappeared
		}
		for _, has := range addresses {
			if prefix, err := netip.ParsePrefix(has.String()); err == nil && prefix.Addr() == a {
				return i.Name, nil
			}
		}
	}
	return "", errors.New("not known: no interface has the address")
}

// describeMachine describes this machine in one line, without a name or an address.
func describeMachine() string {
	f := host.Facts("/")
	release, _, _ := strings.Cut(f.Kernel, " ")
	text := fmt.Sprintf("Linux %s, %s, %d × %s", release, f.Arch, f.CPUs, f.CPU)
	if f.Virtual != "" {
		text += ", a guest of " + f.Virtual
	}
	return text
}
