package docker

import (
	"context"
	"maps"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/locality"
)

// locate finds out how much of this machine the daemon shares. A private daemon shares all.
func (e *Engine) locate(ctx context.Context, withLimit func(context.Context) (context.Context, context.CancelFunc)) error {
	e.cgroups = e.session.Cgroups != nil
	if e.private != nil {
		return nil
	}
	found, err := locality.Check(ctx, e.session, locality.Subject{
		Daemon: e.String(), Engine: e, WithLimit: withLimit, Process: processOf, Machine: e.machine(), Users: e.remapped(),
	})
	if err != nil {
		return err
	}
	e.cgroups = found.Cgroups
	maps.Copy(e.Missing, found.Missing)
	e.target.Notes = append(e.target.Notes, found.Notes...)
	return nil
}

// machine is the daemon's description of its machine.
func (d *daemon) machine() locality.Machine {
	return locality.Machine{Kernel: d.info.KernelVersion, Memory: d.info.MemTotal}
}

// remapped is the reason why root in a container is another user on the host; empty if it is root, or the user of a rootless daemon.
func (d *daemon) remapped() string {
	if !d.secured("userns") {
		return ""
	}
	return d.String() + " maps the users of containers to others (userns-remap)"
}

// processOf returns the process of a running container in the daemon's report.
func processOf(ctx context.Context, c engine.Container) (locality.Process, error) {
	b := c.(*container)
	answer, err := request(ctx, b, "find the process of", b.e.client.ContainerInspect, client.ContainerInspectOptions{})
	if err != nil {
		return locality.Process{}, err
	}
	p := locality.Process{IDs: []string{b.id}}
	if answer.Container.State != nil {
		p.PID = answer.Container.State.Pid
	}
	return p, nil
}
