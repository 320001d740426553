package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// Engine drives one OCI runtime by its command line.
type Engine struct {
	session engine.Session
	info    engine.Info
	kind    runtimes.Kind
	cannot  map[engine.Capability]string
	dir     string   // bundles and the runtime's own state
	root    string   // the runtime's state
	flags   []string // global flags of every call
	env     []string // of every call
	// What its first container has shown of the runtime:
	tidy   bool // it leaves no processes behind but the containers'
	sweeps bool // its delete removes the container's cgroup from all hierarchies

	mu    sync.Mutex
	group string // cgroup below which containers are made
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Placer     = (*Engine)(nil)
	_ engine.Accountant = (*Engine)(nil)
	_ engine.Execer     = (*container)(nil)
	_ engine.Pauser     = (*container)(nil)
	_ engine.Updater    = (*container)(nil)
)

// Info says what the runtime is.
func (e *Engine) Info() engine.Info { return e.info }

// Supports tells what the runtime can do, as far as it is known beforehand.
func (e *Engine) Supports(c engine.Capability) error {
	if reason, ok := e.cannot[c]; ok {
		return &engine.UnsupportedError{What: string(c), Reason: reason}
	}
	switch c {
	case engine.CanPull:
		return &engine.UnsupportedError{What: string(c), Reason: "it takes the root file system as a directory, and pulls nothing"}
	case engine.CanStats:
		return &engine.UnsupportedError{What: string(c), Reason: "the OCI runtime specification has no such call"}
	case engine.CanExec, engine.CanPause, engine.CanUpdate, engine.NetworkHost:
		return nil
	default:
		return &engine.UnsupportedError{What: string(c), Reason: "there is no such capability"}
	}
}

// Place implements engine.Placer.
func (e *Engine) Place(group string) error {
	e.session.Launcher.IgnoreStrays(e.tidy && group != "")
	if err := e.session.Place(group); err != nil {
		return err
	}
	e.mu.Lock()
	e.group = group
	e.mu.Unlock()
	return nil
}

// Usage implements engine.Accountant.
func (e *Engine) Usage() engine.Usage { return engine.Usage{CPU: e.session.Launcher.CPU()} }

// Create writes a bundle and has the runtime create a container from it.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, context.Cause(ctx))
	}
	e.mu.Lock()
	parent := e.group
	e.mu.Unlock()
	group, err := e.session.Group(parent, spec.ID)
	if err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	bundle := filepath.Join(e.dir, "bundles", spec.ID)
	network := e.kind.NoNetwork
	if spec.Network == engine.HostNet {
		network = e.kind.HostNetwork
	}
	if _, chosen := e.info.Target.Option("network"); chosen {
		network = nil
	}
	c := &container{
		e: e, id: spec.ID, group: group, network: network, bundle: bundle, log: filepath.Join(bundle, logName),
	}
	if err := os.Mkdir(c.bundle, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create container %q: a container of this name exists", c.id)
		}
		return nil, fmt.Errorf("make the bundle of container %q: %w", c.id, err)
	}
	if err := c.create(ctx, spec); err != nil {
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

// Close removes the runtime's state directory, and the mounts that the runtime has left there.
func (e *Engine) Close() error {
	err := unmountBelow(e.dir)
	if err == nil {
		err = os.RemoveAll(e.dir)
	}
	if err != nil {
		return fmt.Errorf("remove the state of %s: %w", e.info.Target, err)
	}
	return nil
}
