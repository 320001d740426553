package runner

import (
	"context"
	"net"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// trialNetwork implements bench.Network.
type trialNetwork struct{ *trial }

func (t trialNetwork) Link(ctx context.Context) (engine.Link, error) {
	if err := t.engine.Supports(engine.NetworkBridge); err != nil {
		return engine.Link{}, err
	}
	networker, err := bench.Optional[engine.Networker](t.engine, engine.NetworkBridge)
	if err != nil {
		return engine.Link{}, err
	}
	var link engine.Link
	err = t.bounded(ctx, "making the network", func(ctx context.Context) (err error) {
		link, err = networker.Link(ctx)
		return err
	})
	return link, err
}

func (t trialNetwork) CreateHost(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	link, err := t.Link(ctx)
	if err != nil {
		return nil, err
	}
	if t.r.Host == nil {
		return nil, &engine.UnsupportedError{What: "a program at the host's end of the network", Reason: "this run has no engine for programs on the host"}
	}
	spec.Network, spec.Join = engine.HostNet, link.Namespace
	spec.Resources.CPUSet = t.r.HostCPUs
	if t.r.HostCPUs != "" {
		t.Condition("cpus of the host's end", t.r.HostCPUs)
	}
	return t.createOutside(ctx, "create at the host's end", spec)
}

func (t trialNetwork) Outward() (engine.Outward, error) {
	outgoing, ok := t.engine.(engine.Outgoing)
	if !ok {
		return engine.Outward{}, &engine.UnsupportedError{What: "a server on another machine", Reason: "containers of this engine reach no other machine"}
	}
	return outgoing.Outward()
}

func (t trialNetwork) Remote(ctx context.Context, place remote.Place, server remote.Server) (bench.Remote, error) {
	if t.r.Remote == nil {
		return nil, &engine.UnsupportedError{What: "a server on another machine", Reason: "this run has no client for it"}
	}
	var remote bench.Remote
	err := t.bounded(ctx, "starting the server on another machine", func(ctx context.Context) (err error) {
		remote, err = t.r.Remote(ctx, place, server)
		return err
	})
	return remote, err
}

func (t trialNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := t.engine.(engine.Dialer); ok {
		return d.Dial(ctx, network, address)
	}
	var host net.Dialer
	return host.DialContext(ctx, network, address)
}
