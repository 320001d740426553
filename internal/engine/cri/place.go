package cri

import (
	"context"
	"fmt"
	"maps"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/locality"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// locate finds out how much of this machine the engine shares. A private engine shares all.
func (e *Engine) locate(ctx context.Context) error {
	if e.service.private != nil {
		return nil
	}
	e.foreign = true // until it is known, the engine chooses the cgroups
	found, err := locality.Check(ctx, e.session, locality.Subject{
		Daemon: e.service.title() + " at " + e.service.socket, Engine: e, WithLimit: runtimes.Runtime{Guest: e.handler.guest}.WithTryLimit,
		Process: processOf, NeedsProcess: e.exits == nil,
	})
	e.foreign = !found.Cgroups
	if err != nil {
		return err
	}
	maps.Copy(e.Missing, found.Missing)
	e.info.Notes = append(e.info.Notes, found.Notes...)
	return nil
}

// processOf returns the process of a running container in the engine's report.
func processOf(ctx context.Context, c engine.Container) (locality.Process, error) {
	b := c.(*container)
	snapshot, err := b.verboseStatus(ctx)
	if err != nil {
		return locality.Process{}, b.explain(ctx, "find the process of", err)
	}
	return locality.Process{PID: snapshot.pid, IDs: []string{b.name, b.pod}}, nil
}

// describeCgroups describes the pods' cgroups.
func (e *Engine) describeCgroups() {
	switch {
	case e.ownsCgroups():
		e.info.Overhead = e.handler.overhead()
		note := "limits are set in the cgroup of the pod too, as a kubelet does"
		if o := e.info.Overhead; o.Memory > 0 {
			note += fmt.Sprintf(", with %.2f CPUs and %d MiB more for the virtual machine", o.CPU, o.Memory>>20)
		}
		e.info.Notes = append(e.info.Notes, note)
	case !e.foreign: // locate has added a note about other cgroups
		e.info.Notes = append(e.info.Notes, "systemd makes its cgroups, not below the run's: the cost of containers to the host is not known")
	}
	switch {
	case !e.handler.hasGVisorShim():
	case e.ownsCgroups():
		e.info.Notes = append(e.info.Notes, "a container's own limits have no effect: all processes of a sandbox are in the pod's cgroup, whose limits hold")
	default:
		e.info.Notes = append(e.info.Notes, "a container's limits do not hold, at creation or by an update that returns success: all processes of a sandbox are in the pod's cgroup")
	}
}
