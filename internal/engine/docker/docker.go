// Package docker is the engine that drives a Docker daemon over its API.
//
// The runtime of a target is HostConfig.Runtime: an entry of the daemon's configuration, or the runtime type of a
// containerd shim. Containers keep the daemon's defaults (its seccomp filter, log driver and storage), because they are
// part of Docker's cost. The image, the program, the network and the limits are the same as with the other engines.
//
// The daemon is the user's own (DOCKER_HOST, or the default socket), where the engine touches only objects with the
// run's name, or a private one. The private daemon has an entry for every runtime that was found. All docker targets
// of a run share the daemon, and the last one to be closed ends its use.
package docker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// name is the engine's name in targets, of its socket and in messages.
const name = "docker"

// Driver opens the targets of Docker. The targets of a session share a daemon. It must not be copied.
type Driver struct {
	shared managed.Shared[*daemon]
}

var (
	_ engine.Driver  = (*Driver)(nil)
	_ engine.Sweeper = (*Driver)(nil)
)

// NewDriver returns a driver without a daemon.
func NewDriver() *Driver { return &Driver{} }

// Describe declares Docker.
func (*Driver) Describe() engine.Description {
	return engine.Description{
		Name: name, Kind: engine.FullEngine, Socket: true, AddressVariable: "DOCKER_HOST", Binaries: append(slices.Clone(programs), kata.Shim),
		// ContainerCreate makes only a record. The daemon's containerd and the shim both delete a container.
		Commands: map[string][]string{"create": {}, "start": {"create", "start"}, "delete": {"delete", "delete"}},
		Programs: monitor.Programs{
			monitor.Daemon: {"dockerd", "containerd"}, monitor.Shim: {"containerd-shim*"}, monitor.Network: {"docker-proxy"},
		},
	}
}

// Candidates lists the runtimes of the host and the further entries of the user's daemon. It queries that daemon, unless
// the session forbids it, and starts none.
func (d *Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	user, _, err := userDaemon(ctx, s)
	if user == nil && err == nil {
		_, err = binaries(s)
	}
	if user != nil {
		defer user.disconnect()
	}
	found := runtimes.Find(ctx, s, name)
	var candidates []engine.Candidate
	for _, r := range found {
		for n, t := range r.Targets(name) {
			c := engine.Candidate{
				Info: engine.Info{Target: t, Binary: r.Binary, Version: r.Version, Isolation: r.Isolation, SmallGuest: r.SmallGuest},
				Err:  cmp.Or(err, r.Err), Default: n == 0,
			}
			switch {
			case user != nil:
				_, c.Info, c.Err = user.lookup(ctx, t)
			case c.Err == nil:
				c.Err = r.Check(ctx, s, t)
			}
			candidates = append(candidates, c)
		}
	}
	if user == nil {
		return candidates
	}
	for _, entry := range slices.Sorted(maps.Keys(user.info.Runtimes)) {
		t := target.Target{Engine: name, Runtime: entry}
		// These are the daemon's own names of runc, which would be the same target twice.
		isBuiltin := strings.HasPrefix(entry, "io.containerd.runc.") || strings.HasPrefix(entry, "io.containerd.runtime.") ||
			slices.ContainsFunc(found, func(f runtimes.Found) bool { return f.Name == entry })
		if _, err := target.Parse(t.String()); err != nil || isBuiltin {
			continue
		}
		_, info, err := user.lookup(ctx, t)
		candidates = append(candidates, engine.Candidate{Info: info, Err: err})
	}
	return candidates
}

// Open connects to the daemon, or starts a private one, and runs a test container on the target.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	dockerd, release, err := d.shared.Acquire(ctx, func(ctx context.Context) (*daemon, error) { return newDaemon(ctx, s) }, (*daemon).end)
	if err != nil {
		return nil, err
	}
	e, err := dockerd.open(ctx, t, release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return e, nil
}
