package podman

import (
	"context"
	"fmt"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Traces implements engine.Traced. It searches the host only for a container that ran: some runtimes leave the state of a container whose
// program does not exist.
func (b *container) Traces(ctx context.Context) (left []string, err error) {
	const op = "search for traces of"
	b.mu.Lock()
	isDeleted, ran := b.deleted, b.started
	b.mu.Unlock()
	if !isDeleted {
		return nil, nil
	}
	state, err := b.e.run(ctx, b.e.command(ctx, b.how, "ps", "--all", "--no-trunc", "--filter", "id="+b.id, "--format", "{{.State}}"))
	if err != nil {
		return nil, b.explain(op, err)
	}
	if state != "" {
		left = append(left, fmt.Sprintf("the container in Podman, as %s", state))
	}
	if !ran {
		return left, nil
	}
	traces, err := b.e.mounts.Traces(ctx, b.e.state, b.id)
	if err != nil {
		return nil, b.explain(op, err)
	}
	return append(left, traces...), nil
}

// Limits implements engine.Limited.
func (b *container) Limits(ctx context.Context) (engine.Resources, error) {
	const op = "read the limits of"
	if b.e.info.Isolation == engine.VM || b.e.Session.Cgroups == nil {
		return engine.Resources{}, engine.ErrHiddenLimits
	}
	text, err := b.call(ctx, op, "container", "inspect", "--format", "{{.State.Pid}}")
	if err != nil {
		return engine.Resources{}, err
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return engine.Resources{}, b.explain(op, fmt.Errorf("podman reports the process %q", text))
	}
	limits, err := engine.LimitsOf(b.e.Session.Cgroups, pid)
	if err != nil {
		return engine.Resources{}, b.explain(op, err)
	}
	return limits, nil
}
