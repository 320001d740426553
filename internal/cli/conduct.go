package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// conduct is what a run does to the host beside its trials, with what has to be said of it.
type conduct struct {
	drops   atomic.Int64 // of the page cache
	refused string       // why the page cache is not dropped although it may be; empty if it is
}

// allow gives the runner what the plan allows on this host, and says on stderr what others on it will notice.
func (r *execution) allow(config *runner.Config) {
	config.Memory, config.Free = r.session.dir.Memory, host.Free
	if _, err := host.Available("/"); err == nil {
		config.Available = func() (int64, error) { return host.Available("/") }
	}
	if _, err := host.OOMKills("/"); err == nil {
		config.OOMKills = func() (int64, error) { return host.OOMKills("/") }
	}
	config.WorkloadCPUs, config.HostCPUs = r.plan.Pinning.Workload, r.plan.Pinning.Touchstone
	if !r.plan.DropsCaches(os.Geteuid() == 0, r.work) {
		return
	}
	caches := host.NewCaches("/")
	if err := caches.Check(); err != nil {
		r.conduct.refused = err.Error()
		fmt.Fprintf(r.app.env.Stderr, "note: the page cache is not dropped: %v\n", err)
		return
	}
	fmt.Fprintln(r.app.env.Stderr, "note: the page cache of this whole machine is dropped before each cold reading; --drop-caches=false prevents it")
	config.DropCaches = func(ctx context.Context) error {
		r.conduct.drops.Add(1)
		return caches.Drop(ctx)
	}
}

// caveats returns a sentence for each change to the host during the run, and for each that was refused.
func (c *conduct) caveats() []string {
	var all []string
	if n := c.drops.Load(); n > 0 {
		all = append(all, fmt.Sprintf("the page cache of the whole machine was dropped %d times, each right before a cold reading", n))
	}
	if c.refused != "" {
		all = append(all, "the page cache was not dropped, though it might have been: "+c.refused)
	}
	return all
}

// pinned says on which CPUs the parts of the run stay, for those that do.
func (r *execution) pinned() []string {
	var all []string
	p := r.plan.Pinning
	if p.Engines != "" && !slices.ContainsFunc(r.targets, hasPrivateDaemon) {
		p.Engines = ""
		const note = "pinning: engines has no effect: the run has no daemon of its own"
		fmt.Fprintf(r.app.env.Stderr, "note: %s\n", note)
		all = append(all, note)
	}
	for _, part := range []struct{ what, cpus string }{
		{"containers, and programs on native,", p.Workload},
		{"daemons of the run", p.Engines},
		{"Touchstone, with programs at the host's end of a network,", p.Touchstone},
	} {
		if part.cpus != "" {
			all = append(all, fmt.Sprintf("%s stayed on CPUs %s", part.what, part.cpus))
		}
	}
	return all
}

// hasPrivateDaemon tells whether a daemon of the run serves the target: only such a one has a cgroup of its own.
func hasPrivateDaemon(t runner.Target) bool {
	e, ok := t.Engine.(engine.DaemonBacked)
	return ok && e.Daemon().Cgroup != nil
}

// hostEnd opens the engine for programs at the host's end of a network, if a target has one.
func (r *execution) hostEnd(ctx context.Context) (engine.Engine, error) {
	for _, t := range r.targets {
		if t.Engine != nil && t.Engine.Supports(engine.NetworkBridge) == nil {
			return r.drivers.Open(ctx, target.Target{Engine: target.Native}, r.engineSession())
		}
	}
	return nil, nil
}
