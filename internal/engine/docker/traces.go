package docker

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// Traces implements engine.Traced. It searches the host only for a container that ran: gVisor leaves its sandbox's state if the program
// does not exist.
func (b *container) Traces(ctx context.Context) (left []string, err error) {
	const op = "search for traces of"
	b.mu.Lock()
	isDeleted, ran := b.deleted, b.started && b.refused == nil
	b.mu.Unlock()
	if !isDeleted || b.id == "" {
		return nil, nil
	}
	answer, err := b.e.client.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	switch {
	case err == nil:
		state := "unknown"
		if answer.Container.State != nil {
			state = string(answer.Container.State.Status)
		}
		left = append(left, fmt.Sprintf("the container in the daemon, as %s", state))
	case !errdefs.IsNotFound(err):
		return nil, b.explain(ctx, op, err)
	}
	if !ran {
		return left, nil
	}
	search := managed.HostTraces
	if b.e.private != nil {
		search = b.e.private.Traces
	}
	traces, err := search(ctx, b.id)
	if err != nil {
		return nil, b.explain(ctx, op, err)
	}
	return append(left, traces...), nil
}

// Limits implements engine.Limited.
func (b *container) Limits(ctx context.Context) (engine.Resources, error) {
	const op = "read the limits of"
	if b.e.target.Isolation == engine.VM || b.e.target.Rootless || !b.e.cgroups {
		return engine.Resources{}, engine.ErrHiddenLimits
	}
	answer, err := request(ctx, b, op, b.e.client.ContainerInspect, client.ContainerInspectOptions{})
	if err != nil {
		return engine.Resources{}, err
	}
	if answer.Container.State == nil || answer.Container.State.Pid <= 0 {
		return engine.Resources{}, b.explain(ctx, op, fmt.Errorf("the daemon does not report its process"))
	}
	limits, err := engine.LimitsOf(b.e.session.Cgroups, answer.Container.State.Pid)
	if err != nil {
		return engine.Resources{}, b.explain(ctx, op, err)
	}
	return limits, nil
}
