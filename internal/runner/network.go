package runner

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
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
	var c engine.Container
	err = t.inHostGroup(func() error {
		return t.bounded(ctx, "create at the host's end", func(ctx context.Context) (err error) {
			c, err = t.r.Host.Create(ctx, spec)
			return err
		})
	})
	if c != nil {
		t.keep(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// inHostGroup calls f while the host's engine starts its processes in a cgroup beside the trial's: none of their
// instructions may count as the target's. The target's engine shares the launcher and must not be called meanwhile.
func (t trialNetwork) inHostGroup(f func() error) error {
	placer, ok := t.r.Host.(engine.CgroupPlacer)
	if !ok || t.group == nil {
		t.mu.Lock()
		t.costMixed = true
		t.mu.Unlock()
		return f()
	}
	name := t.groupName() + "-host"
	if t.hostGroup == nil {
		g, err := t.r.Cgroups.Create(name)
		if err != nil {
			return fmt.Errorf("make a cgroup for the host's end: %w", err)
		}
		t.hostGroup = g
	}
	if err := placer.SetCgroupParent(name); err != nil {
		return err
	}
	err := f()
	// The target's engine places the launcher again: not every engine puts it into the trial's cgroup.
	return errors.Join(err, placer.SetCgroupParent(""), t.engine.(engine.CgroupPlacer).SetCgroupParent(t.groupName()))
}

func (t trialNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := t.engine.(engine.Dialer); ok {
		return d.Dial(ctx, network, address)
	}
	var host net.Dialer
	return host.DialContext(ctx, network, address)
}
