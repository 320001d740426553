package cri

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// exitGrace is the time in which the processes of a removed pod, such as its shim, must exit.
const exitGrace = 2 * time.Second

// inspectGroup notes the processes that the engine has left in the cgroup of a removed pod.
func (c *container) inspectGroup(ctx context.Context) {
	if pids, err := c.group.Procs(); err != nil || len(pids) == 0 {
		return
	}
	limitCtx, cancel := context.WithTimeout(ctx, exitGrace)
	defer cancel()
	if err := c.group.Remove(limitCtx); err != nil && ctx.Err() == nil {
		c.mu.Lock()
		c.left = append(c.left, "processes: "+err.Error())
		c.mu.Unlock()
	}
}

// Traces implements engine.Traced. It searches the host only for a container that ran: some runtimes leave the state of a container whose
// program does not exist.
func (c *container) Traces(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	isDeleted, abandoned, ran, left := c.deleted, c.abandoned, c.ran, slices.Clone(c.left)
	c.mu.Unlock()
	if abandoned { // the notes of the target say that CRI-O keeps its records
		return left, nil
	}
	if !isDeleted || c.e.service.dead() != nil {
		return nil, nil //nolint:nilerr // a dead engine has no containers, and other calls report it
	}
	fail := func(err error) ([]string, error) { return nil, c.explain(ctx, "search for traces of", err) }
	if c.name != "" {
		answer, err := c.e.service.ContainerStatus(ctx, &api.ContainerStatusRequest{ContainerId: c.name})
		if err == nil {
			left = append(left, fmt.Sprintf("the container in %s, as %s", c.e.service.title(), answer.GetStatus().GetState()))
		} else if status.Code(err) != codes.NotFound {
			return fail(err)
		}
	}
	if c.pod != "" {
		answer, err := c.e.service.PodSandboxStatus(ctx, &api.PodSandboxStatusRequest{PodSandboxId: c.pod})
		if err == nil {
			left = append(left, fmt.Sprintf("the pod in %s, as %s", c.e.service.title(), answer.GetStatus().GetState()))
		} else if status.Code(err) != codes.NotFound {
			return fail(err)
		}
	}
	if !ran {
		return left, nil
	}
	search := managed.HostTraces
	if c.e.service.private != nil {
		search = c.e.service.private.Traces
	}
	traces, err := search(ctx, c.name, c.pod)
	if err != nil {
		return fail(err)
	}
	return append(left, traces...), nil
}

// Limits implements engine.Limited. gVisor's own shim ignores the limits of a container, and the limits of the pod hold for all its
// processes, as in Kubernetes.
func (c *container) Limits(ctx context.Context) (engine.Resources, error) {
	const op = "read the limits of"
	if c.e.handler.guest != nil || c.e.info.Isolation == engine.VM || c.e.session.Cgroups == nil || c.e.foreign {
		return engine.Resources{}, engine.ErrHiddenLimits
	}
	if err := c.check(op); err != nil {
		return engine.Resources{}, err
	}
	if c.group != nil && c.e.handler.hasGVisorShim() {
		l, err := c.group.Limits()
		return engine.Resources{CPU: l.CPU, Memory: l.Memory, PIDs: l.PIDs}, err
	}
	snapshot, err := c.verboseStatus(ctx)
	if err != nil {
		return engine.Resources{}, c.explain(ctx, op, err)
	}
	if snapshot.pid <= 0 {
		return engine.Resources{}, &engine.UnsupportedError{
			What: "the limits of a container", Reason: c.e.service.title() + " does not report the process of a container",
		}
	}
	return engine.LimitsOf(c.e.session.Cgroups, snapshot.pid)
}
